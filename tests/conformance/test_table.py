"""The table of docs/reference/conformance.md names every item of the guide, and every example."""

from __future__ import annotations

from pathlib import Path

from scripts.conformance import areas

ROOT = Path(__file__).parents[2]
NOT_YET_MAX = 0
"""May only fall."""


def test_each_shown_row_has_an_example_and_each_example_a_row() -> None:
    folder = ROOT / "examples" / "guide"
    examples = {f"{file.parent.name}/{file.stem}" for file in folder.glob("*/*.py")}

    assert {f"{area.name}/{row.name}" for area in areas() for row in area.rows if row.has_example} == examples


def test_the_number_of_items_that_are_not_shown_may_only_fall() -> None:
    assert sum(bool(row.open) for area in areas() for row in area.rows) == NOT_YET_MAX


def test_the_gate_runs_the_test_of_each_area() -> None:
    tests = {area.name: (ROOT / "tests" / "conformance" / f"test_{area.name}.py").read_text() for area in areas()}

    assert [name for name, text in tests.items() if "thorough" in text] == []
    assert [row.name for area in areas() for row in area.rows if row.thorough] == ["continuous", "real_time"]


def test_what_the_gate_runs_instead_of_a_row_is_run_by_it() -> None:
    for area in areas():
        run = {row.name for row in area.rows if not row.like and not row.thorough}
        instead = {row.like for row in area.rows if row.like}
        assert {name for name in instead - run if not (ROOT / name).is_file()} == set()


def test_no_name_is_used_twice() -> None:
    names = [f"{area.name}/{row.name}" for area in areas() for row in area.rows]

    assert len(names) == len(set(names))
