"""The table of docs/reference/conformance.md names every item of the guide, and every example."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.conformance import areas, page
from tests.conformance.outputs import rows_of_sink
from tests.support import warm_python
from tests.support.warm_jvm import attached

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


# The commands of docs/reference/conformance.md, as they are typed.

COMMANDS = re.compile(r"```sh\npython (\S+ \S+) && cd (\S+)\nslackwater (.*)\n```")


@pytest.mark.spark
def test_the_commands_of_the_page(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    typed = COMMANDS.search(page())
    assert typed is not None
    folder = tmp_path / typed[2]

    subprocess.run([sys.executable, *shlex.split(typed[1])], cwd=tmp_path, check=True)
    done = warm_python.run(shlex.split(typed[3]), folder, attached(folder))

    assert done.returncode == 0, done.stderr
    assert rows_of_sink(folder / "out" / "tumbling_window")
