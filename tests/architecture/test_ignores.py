"""Each place where a checker is overruled names the rule and the reason; ``scripts/budget.toml`` has their number."""

from __future__ import annotations

import re
from pathlib import Path

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
