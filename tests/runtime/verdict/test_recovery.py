"""The page of what happens after a change: made from its tables, and each row is backed by a test."""

from pathlib import Path

import pytest

from scripts.recovery import page, rows
from tests.runtime.verdict.edits import edits
from tests.runtime.verdict.test_typed import NOT_EXACT

ROOT = Path(__file__).resolve().parents[3]
TEXTS = ("spark", "verdict", "goal", "rows")


@pytest.mark.parametrize("row", rows(), ids=lambda row: row["change"])
def test_a_row_is_backed_by_edits_or_by_tests(row: dict[str, list[str]]) -> None:
    assert set(row.get("edits", ())) <= {edit.name for edit in edits()}
    assert "edits" in row or ("tests" in row and all(row[text] for text in TEXTS))
    for test in row.get("tests", ()):
        file, _, name = test.partition("::")
        assert f"\ndef {name}(" in (ROOT / file).read_text()


def test_rows_that_are_not_exact_say_so() -> None:
    lines = [line for line in page().splitlines() if any(f"| {name} |" in line for name in NOT_EXACT)]
    assert lines
    assert all(line.endswith("| - |") for line in lines)
