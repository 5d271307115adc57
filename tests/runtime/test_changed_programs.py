"""Each edit of the table has the right effect on kept state. DataFrames are built with Spark; no query is started."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from slackwater.core.program import Program
from slackwater.core.verdict import Effect
from slackwater.diagnose.program_changes import changes, verdict
from tests.runtime.program_cases import cases
from tests.runtime.program_queries import Case
from tests.support.warm_jvm import recorded_programs

PROGRAM = Path(__file__).with_name("programs") / "program_cases.py"
IN_OTHER_MODES = {
    # By the effect in append mode: in update and in complete mode.
    "window length": ("not-restorable", "needs-rebuild"),
    "session gap": ("not-restorable", "needs-rebuild"),
    "key of the same type": ("not-restorable", "needs-rebuild"),
    "key with another expression": ("not-restorable", "needs-rebuild"),
    "order of two keys": ("not-restorable", "needs-rebuild"),
    "sum to max": ("needs-rebuild", "needs-rebuild"),
    "two sums swapped": ("needs-rebuild", "needs-rebuild"),
    "filter inside an aggregate": ("needs-rebuild", "needs-rebuild"),
    "filter before a window": ("changes-rows", "changes-rows"),
    "watermark column": ("not-restorable", "same"),
    "delay lowered": ("changes-rows", "same"),
    "two selects": ("same", "same"),
}

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return recorded_programs(PROGRAM, tmp_path_factory.mktemp("programs"))


def _programs(recorded: dict[str, Any], name: str) -> tuple[Program, Program]:
    found = recorded["programs"][name]
    assert isinstance(found, list), found
    before, after = map(Program.from_json, found)
    assert json.loads(json.dumps([before.as_json(), after.as_json()])) == found
    return before, after


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_the_effect_of_an_edit(recorded: dict[str, Any], case: Case) -> None:
    before, after = _programs(recorded, case.name)
    found = verdict(before, after)
    assert found.effect.word == case.effect, found
    if case.code:
        assert found.changes[0].code == case.code, found
    assert any(case.text in change.text for change in found.changes) or not case.text, found
    assert changes(before, before) == changes(after, after) == ()
    if found.effect >= Effect.NEEDS_REBUILD:
        assert found.goal == ("reset" if found.effect is Effect.NOT_RESTORABLE else "rebuild"), found


@pytest.mark.parametrize("name", IN_OTHER_MODES)
def test_the_effect_in_other_output_modes(recorded: dict[str, Any], name: str) -> None:
    before, after = _programs(recorded, name)
    for mode, effect in zip(("update", "complete"), IN_OTHER_MODES[name], strict=True):
        found = verdict(replace(before, output_mode=mode), replace(after, output_mode=mode))
        assert found.effect.word == effect, (mode, found)


@pytest.mark.parametrize(
    ("before", "after", "effect"),
    [
        ("append", "update", "not-restorable"),
        ("update", "append", "not-restorable"),
        ("update", "complete", "not-restorable"),
    ],
)
def test_another_output_mode(recorded: dict[str, Any], before: str, after: str, effect: str) -> None:
    aggregation, _ = _programs(recorded, "two selects")
    found = verdict(replace(aggregation, output_mode=before), replace(aggregation, output_mode=after))
    assert (found.effect.word, [one.code for one in found.changes]) == (effect, ["output-mode-changed"])
    joined, _ = _programs(recorded, "join keys")
    found = verdict(replace(joined, output_mode=before), replace(joined, output_mode=after))
    assert found.effect is Effect.COMPATIBLE
