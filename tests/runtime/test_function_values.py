"""A value that a Python function takes with it counts, in whatever way it got there. Starts no query."""

from pathlib import Path
from typing import Any

import pytest

from slackwater.core.program import Program
from slackwater.diagnose.program_changes import changes
from tests.runtime.function_ways import HARMLESS, UNCOMPARED, WAYS
from tests.support.warm_jvm import recorded_programs

PROGRAM = Path(__file__).with_name("programs") / "function_values.py"

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return recorded_programs(PROGRAM, tmp_path_factory.mktemp("values"))


@pytest.mark.parametrize("way", WAYS)
def test_another_value_is_a_change_of_the_function(programs: dict[str, Any], way: str) -> None:
    before, again, after = map(Program.from_json, programs["ways"][way])
    (change,) = changes(before, after)
    assert change.code == ("output-changed" if way.endswith("that writes") else "function-changed")
    assert f"has changed: it has a different value of {WAYS[way][1]};" in f"{change.text};"
    assert changes(before, again) == ()


@pytest.mark.parametrize("edit", [*HARMLESS, *UNCOMPARED])
def test_an_edit_that_changes_no_value_is_none(programs: dict[str, Any], edit: str) -> None:
    before, after = map(Program.from_json, programs["harmless"][edit])
    assert before.values
    assert changes(before, after) == ()


def test_no_value_is_recorded(programs: dict[str, Any]) -> None:
    values = [one.values for found in programs["ways"].values() for one in map(Program.from_json, found)]
    digests = [digest for each in values for of in each.values() for digest in of.values()]
    assert {len(bytes.fromhex(digest)) for digest in digests} == {8}
