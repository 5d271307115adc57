"""Figures of the code, of the working tree or any revision, compared with those of another.

python scripts/figures.py [REVISION] [--base REVISION]
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import tarfile
import tokenize
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles

ROOT = Path(__file__).resolve().parents[1]
PACKAGE, TESTS = "src/slackwater/", "tests/"
KIND = re.compile(r"tests/architecture/test_extension_(?P<kind>\w+)\.py")
NOQA = re.compile(r"#\s*noqa\b")


def files_of(revision: str | None) -> dict[str, str]:
    """The Python files of a revision by their paths; without one those of the working tree."""
    if revision is None:
        listed = _git("ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.py").decode().split("\0")
        return {name: (ROOT / name).read_text() for name in sorted(listed) if (ROOT / name).is_file()}
    with tarfile.open(fileobj=io.BytesIO(_git("archive", revision))) as archive:
        members = [member for member in archive if member.isfile() and member.name.endswith(".py")]
        return {one.name: read.read().decode() for one in members if (read := archive.extractfile(one)) is not None}


def figures(files: dict[str, str]) -> dict[str, str]:
    """Each figure with its name, in the order in which they are shown."""
    package = {name: text for name, text in files.items() if name.startswith(PACKAGE)}
    tests = [text for name, text in files.items() if name.startswith(TESTS)]
    lines = sum(map(_lines, package.values()))
    functions = sorted(length for text in package.values() for length in _function_lengths(text))
    comments = [comment for text in package.values() for comment in _comments(text)]
    noqa = [comment for comment in comments if NOQA.search(comment)]
    explaining = [comment for comment in comments if not NOQA.search(comment) and "type: ignore" not in comment]
    kinds = {found["kind"]: name for name in sorted(files) if (found := KIND.fullmatch(name))}
    return {
        "lines of src/slackwater": f"{lines:,}",
        "modules": f"{sum(1 for text in package.values() if text.strip()):,}",
        "largest module, lines": f"{max(map(_lines, package.values())):,}",
        "function lines: median": f"{median(functions):.0f}",
        "function lines: 95th percentile": f"{quantiles(functions, n=20)[-1]:.0f}",
        "function lines: longest": f"{functions[-1]}",
        "noqa": f"{len(noqa)}",
        "noqa of late imports (PLC0415)": f"{sum('PLC0415' in comment for comment in noqa)}",
        "comment lines per hundred": f"{100 * len(explaining) / lines:.1f}",
        "lines of tests": f"{sum(map(_lines, tests)):,}",
        **{f"files for another {kind} (tested)": f"{_files_of_addition(name, files)}" for kind, name in kinds.items()},
    }


def _files_of_addition(test: str, files: dict[str, str]) -> int:
    """How many files have the kind that a test adds: those that define what it registers.

    The test fails where a file of the package has to be edited for it, too.
    """
    helpers = [name for name in map(_path, _imports(files[test]).values()) if name in files]
    return len({definer for file in (test, *helpers) for definer in _definers(file, files[file])})


def _definers(file: str, text: str) -> set[str]:
    """The files that define what a file of tests registers."""
    imported = _imports(text)
    registered = [
        node.args[1]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "register"
    ]
    names = [next((one.id for one in ast.walk(value) if isinstance(one, ast.Name)), "") for value in registered]
    return {_path(imported[name]) if imported.get(name, "").startswith("tests.") else file for name in names}


def _imports(text: str) -> dict[str, str]:
    """The modules that names are imported from."""
    found = [node for node in ast.parse(text).body if isinstance(node, ast.ImportFrom) and node.module]
    return {alias.name: node.module or "" for node in found for alias in node.names}


def _path(module: str) -> str:
    return module.replace(".", "/") + ".py"


def _lines(text: str) -> int:
    return len(text.splitlines())


def _function_lengths(text: str) -> list[int]:
    found = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return [(node.end_lineno or node.lineno) - node.lineno + 1 for node in found]


def _comments(text: str) -> list[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [token.string for token in tokens if token.type == tokenize.COMMENT]


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each figure, with a column for each of the two revisions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("revision", nargs="?", help="default: the working tree")
    parser.add_argument("--base", metavar="REV", help="the revision to compare with")
    options = parser.parse_args(arguments)
    columns = [(options.revision or "working tree", figures(files_of(options.revision)))]
    if options.base:
        columns.insert(0, (options.base, figures(files_of(options.base))))
    print(f"{'':34}" + "".join(f"{name[:16]:>18}" for name, _ in columns))
    for figure in columns[-1][1]:
        print(f"{figure:34}" + "".join(f"{values.get(figure, '-'):>18}" for _, values in columns))


if __name__ == "__main__":
    main()
