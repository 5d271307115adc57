"""Compares the size of the code and of the documentation with its budget, ``budget.toml`` beside this file.

python -m scripts.budget
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUDGET = Path(__file__).with_name("budget.toml")
COUNTED = frozenset({tokenize.NAME, tokenize.NUMBER, tokenize.STRING, tokenize.OP})
VALUE_CLASSES = frozenset({"dataclass", "NamedTuple", "Protocol", "TypedDict"})
TYPE_IGNORE = re.compile(r"#\s*type:\s*ignore\[")
LINT_IGNORE = re.compile(r"#\s*noqa: (?!PLC0415|PLR2004)[A-Z]")
"""A late import and a number of bytes in a format need no reason."""
VAGUE = {
    "uses-of-one": re.compile(r"\bones?\b"),
    "uses-of-what": re.compile(r"\bwhat\b"),
    "uses-of-where": re.compile(r"\bwhere\b"),
    "uses-of-that-of": re.compile(r"\b(?:that|those) of\b"),
}
"""Words for which a reader has to look back for the noun: counted in docstrings and in the documentation."""
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def measured(root: Path = ROOT) -> dict[str, int]:
    """The figures of a checkout, by the names in ``budget.toml``."""
    package, tests, others = (
        [file.read_text() for folder in folders for file in sorted((root / folder).rglob("*.py"))]
        for folders in (("src",), ("tests",), ("scripts", "examples"))
    )
    trees = [ast.parse(text) for text in package]
    names = Counter(name for tree in trees for name in _value_classes(tree))
    pages = [page.read_text() for page in (root / "docs").rglob("*.md")]
    docstrings = [text for tree in trees for text in _docstrings(tree)]
    prose = "\n".join([*docstrings, *pages]).lower()
    return {
        "modules": len(package),
        "lines": sum(text.count("\n") for text in package),
        "tokens": sum(map(_tokens, package)),
        "value-classes": names.total(),
        "value-class-names-used-twice": sum(1 for times in names.values() if times > 1),
        "longest-function": max((length for tree in trees for length in _function_lengths(tree)), default=0),
        "longest-module": _longest(package),
        "longest-test-module": _longest(tests),
        "type-ignores": sum(len(TYPE_IGNORE.findall(text)) for text in [*package, *tests, *others]),
        "lint-ignores": sum(len(LINT_IGNORE.findall(text)) for text in [*package, *tests, *others]),
        "late-imports": sum(text.count("# noqa: PLC0415") for text in package),
        "words-of-docs": sum(len(page.split()) for page in pages),
        "words-of-docstrings": sum(len(text.split()) for text in docstrings),
        **{name: len(words.findall(prose)) for name, words in VAGUE.items()},
        "decisions": len(list((root / "docs/decisions").glob("[0-9]*.md"))),
        "changelog-lines": (root / "CHANGELOG.md").read_text().count("\n"),
    }


def compared(found: dict[str, int], budget: dict[str, int]) -> tuple[str, bool]:
    """A line for each figure, and whether all of them are within the budget."""
    lines = []
    for name in sorted(found.keys() | budget.keys()):
        if name not in found or name not in budget:
            lines.append(f"{name}: not in {'the budget' if name in found else 'what is measured'}")
            continue
        rest = budget[name] - found[name]
        verdict = f"over by {-rest}" if rest < 0 else f"could fall by {rest}" if rest else "at its budget"
        lines.append(f"{name:30}{found[name]:>9}{budget[name]:>9}  {verdict}")
    return "\n".join(lines), found.keys() == budget.keys() and all(found[name] <= budget[name] for name in found)


def _docstrings(tree: ast.Module) -> list[str]:
    documented = (ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, DOCUMENTED))
    return [text for text in documented if text is not None]


def _tokens(text: str) -> int:
    return sum(1 for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type in COUNTED)


def _value_classes(tree: ast.Module) -> list[str]:
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return [one.name for one in classes if VALUE_CLASSES & {_name(mark) for mark in (*one.decorator_list, *one.bases)}]


def _name(mark: ast.expr) -> str:
    """``dataclass`` of ``@dataclasses.dataclass(frozen=True)``, ``Protocol`` of ``Protocol[T]``."""
    return re.split(r"[\[(]", ast.unparse(mark), maxsplit=1)[0].rpartition(".")[2]


def _function_lengths(tree: ast.Module) -> list[int]:
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return [(node.end_lineno or node.lineno) - node.lineno + 1 for node in functions]


def _longest(texts: list[str]) -> int:
    return max((len(text.splitlines()) for text in texts), default=0)


def main() -> int:
    """Print the comparison; 1 if a figure is over its budget."""
    page, within = compared(measured(), tomllib.loads(BUDGET.read_text()))
    print(page)
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
