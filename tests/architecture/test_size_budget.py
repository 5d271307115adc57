"""The size of the code and of the documentation is compared with its budget."""

import re
from pathlib import Path

from scripts.budget import compared, measured

DOCS = "docs"
MODULE = """
import dataclasses
from typing import NamedTuple, Protocol

@dataclasses.dataclass(frozen=True)
class Row:
    a: int  # TYPE: ignore[misc] # why

class Pair(NamedTuple):
    b: int

class Reader(Protocol[int]):
    def read(self) -> int:
        import json  # NOQA: PLC0415
        return 1  # NOQA: S101 - why

class Plain(Row): ...
""".replace("TYPE:", "type:").replace("NOQA:", "noqa:")


def test_what_is_measured(tmp_path: Path) -> None:
    files = {
        "src/house/one.py": MODULE,
        "src/house/two.py": 'class Pair(NamedTuple):\n    """What those of others, where one is."""\n    c: int\n',
        "tests/test_one.py": "\n\n\n",
        f"{DOCS}/index.md": "# Two words\n",
        f"{DOCS}/decisions/0001-why.md": "# 0001 Why\n",
        f"{DOCS}/decisions/README.md": "",
        "CHANGELOG.md": "a\nb\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    found = measured(tmp_path)

    assert found.pop("tokens") > 0
    assert found == {
        "modules": 2,
        "lines": MODULE.count("\n") + 3,
        "value-classes": 4,
        "value-class-names-used-twice": 1,
        "longest-function": 3,
        "longest-module": MODULE.count("\n"),
        "longest-test-module": 3,
        "type-ignores": 1,
        "lint-ignores": 1,
        "late-imports": 1,
        "words-of-docs": 6,
        "words-of-docstrings": 7,
        "uses-of-one": 1,
        "uses-of-what": 1,
        "uses-of-where": 1,
        "uses-of-that-of": 1,
        "decisions": 1,
        "changelog-lines": 2,
    }


def test_a_figure_over_its_budget_fails_and_what_could_fall_is_said() -> None:
    assert compared({"lines": 9, "modules": 2}, {"lines": 10, "modules": 2})[1]
    page, within = compared({"lines": 9, "modules": 3}, {"lines": 10, "modules": 2})
    assert not within
    assert [line.partition("  ")[0] for line in page.splitlines()] == ["lines", "modules"]
    assert "could fall by 1" in page
    assert "over by 1" in page


def test_a_figure_without_a_budget_fails() -> None:
    assert not compared({"lines": 9}, {})[1]
    assert not compared({}, {"lines": 9})[1]


# Each place where a checker is overruled names the rule and the reason; ``scripts/budget.toml`` has their number.


TYPE_IGNORE = re.compile(r"#\s*type:\s*ignore(?P<code>\[[\w\-, ]+\])?(?P<reason>\s+[#-]\s+\S.*)?")
# A heavy import is placed where it is used, and a number of bytes in a format is its own name: neither needs a reason.
SELF_EXPLAINING = {": PLC0415", ": PLR2004"}
LINT_IGNORE = re.compile(r"#\s*noqa(?P<code>:\s*[A-Z]+\d+(,\s*[A-Z]+\d+)*)?(?P<reason>\s+[#-]\s+\S.*)?")


def _found(pattern: re.Pattern[str], root: Path) -> list[tuple[str, re.Match[str]]]:
    return [
        (f"{file.relative_to(root)}:{number}", match)
        for folder in ("src", "tests", "scripts", "examples")
        for file in sorted((root / folder).rglob("*.py"))
        if file != Path(__file__)
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if (match := pattern.search(line))
    ]


def _unexplained(found: list[tuple[str, re.Match[str]]]) -> list[str]:
    return [place for place, match in found if not (match["code"] and match["reason"])]


def test_each_type_ignore_has_a_code_and_a_reason(root: Path) -> None:
    assert _unexplained(_found(TYPE_IGNORE, root)) == []


def test_each_lint_ignore_has_a_code_and_a_reason(root: Path) -> None:
    found = [(place, match) for place, match in _found(LINT_IGNORE, root) if match["code"] not in SELF_EXPLAINING]
    assert _unexplained(found) == []
