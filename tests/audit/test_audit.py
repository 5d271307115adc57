"""What an audit makes of its results, and what it refuses before any process is started."""

import os
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slackwater.audit.drilled_sink import Armed, check_drilled, counter
from slackwater.audit.steps import CHOICES, Step, most_steps, steps_for
from slackwater.cli.verbs.audit import AuditOptions, compared, selected, steps_of
from slackwater.core.errors import NotFound, PipelineError, UsageError
from slackwater.runtime.pipeline import Pipeline
from slackwater.sinks.common.contract import Sink
from tests.sinks.test_all_of import SINGLE
from tests.support.errors import raises_code

PIPELINE = """
import os
import slackwater as sw

pipeline = sw.Pipeline("shop")
pipeline.stream(sink=sw.sinks.foreach(print), name=os.environ.get("AUDITED", "orders"))(lambda spark: None)
pipeline.stream(sink=sw.sinks.noop(), name="other")(lambda spark: None)


@pipeline.audit_reader("orders")
def written(spark):
    return []
"""
STEPS = (Step("none"), Step("after"), Step("twice"), Step("none"))


def _results(*shown: dict[str, int] | str) -> dict[int, dict[str, Any]]:
    """What a run has written after each step; a string is why a step failed."""
    return {
        number: {"end": "failed", "reason": rows, "shown": {}, "drilled": True}
        if isinstance(rows, str)
        else {"end": "finished", "reason": None, "shown": rows, "drilled": True}
        for number, rows in enumerate(shown)
    }


REFERENCE = _results({"a": 1}, {"a": 1, "b": 2}, {"a": 1, "b": 2, "c": 1}, {"a": 1, "b": 2, "c": 1, "d": 1})


def test_a_difference_counts_for_the_step_after_which_it_appears() -> None:
    drilled = _results({"a": 1}, {"a": 1, "b": 4}, {"a": 1, "b": 4, "x": 1}, {"a": 1, "b": 4, "x": 1, "d": 1})

    found = compared(STEPS, REFERENCE, drilled)

    assert [(one["doubled"], one["vanished"], one["other"], one["passed"]) for one in found] == [
        (0, 0, 0, True),
        (2, 0, 0, False),
        (0, 1, 1, False),
        (0, 0, 0, True),
    ]


def test_what_comes_after_a_failed_step_is_not_run() -> None:
    found = compared(STEPS, REFERENCE, _results({"a": 1}, "it fails"))

    assert [one["failed"] is not None for one in found] == [False, True, True, True]
    assert [one["reached"] for one in found] == [True, True, False, False]
    assert not any(one["passed"] for one in found[1:])


def test_a_drill_that_did_not_take_place_is_not_said_to_have() -> None:
    drilled = {**REFERENCE, 1: {**REFERENCE[1], "drilled": False}}

    found = compared(STEPS, REFERENCE, drilled)

    assert [one["reached"] for one in found] == [one["passed"] for one in found] == [True, False, True, True]
    assert not any(one["doubled"] or one["vanished"] or one["other"] or one["failed"] for one in found)


def _uninterrupted(lines: int, *, by_function: bool = True) -> dict[int, dict[str, Any]]:
    """What an uninterrupted run has seen of a function that does more in its first batch than later."""
    seen = {"lines": [f"shop.py:{line}" for line in range(lines)], "by_function": by_function, "passes": 1}
    first = {**seen, "lines": ["shop.py:1"] * 9, "passes": 2}
    return dict(enumerate([first] + [seen] * 9))


def test_the_drills_are_those_of_the_batch_that_they_are_done_in() -> None:
    steps = steps_of("shop/orders", AuditOptions(drills=("line", "job", "task")), _uninterrupted(2))

    assert [step.drill for step in steps] == ["none", "line", "job", "task", "none"]
    assert [step.place for step in steps if step.drill == "line"] == ["shop.py:1"]
    assert [step.last_pass for step in steps] == [2, 1, 1, 1, 1]


def test_a_drill_that_was_named_and_cannot_be_done_is_refused() -> None:
    with raises_code(UsageError, "audit-drill", hint="leave out --drill line"):
        steps_of("shop/orders", AuditOptions(drills=("line", "job")), _uninterrupted(1))

    steps = steps_of("shop/orders", AuditOptions(), _uninterrupted(1, by_function=False))
    assert [step.drill for step in steps] == ["none", "before", "job", "task", "after", "none"]


@pytest.mark.parametrize("lines", [0, 1, 2, 3, 4, 50])
@pytest.mark.parametrize("by_function", [False, True])
def test_the_steps_of_a_function(lines: int, *, by_function: bool) -> None:
    steps = steps_for([f"shop.py:{line}" for line in range(lines)], CHOICES, by_function=by_function)

    assert (steps[0].drill, steps[-1].drill) == ("none", "none")
    assert len(steps) <= most_steps(CHOICES)
    kills = [step.line for step in steps if step.drill == "line"]
    assert len(kills) == (min(3, max(0, lines - 1)) if by_function else 0)
    assert len(set(kills)) == len(kills)
    assert all(0 < line < lines for line in kills)
    assert ("twice" in {step.drill for step in steps}) == by_function


def test_the_lines_of_the_users_files_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "shop.py"
    file.write_text("import json\ndef save():\n    one = [n for n in range(9)]\n    json.dumps(one)\n    return one\n")
    code = runpy.run_path(str(file))
    armed = Armed(tmp_path, str(tmp_path))
    before = sys.gettrace()
    sys.settrace(counter(armed))
    try:
        code["save"]()
    finally:
        sys.settrace(before)

    assert armed.lines == ["shop.py:3", "shop.py:4", "shop.py:5"]


@pytest.fixture
def reference(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "shop.py").write_text(PIPELINE)
    before = dict(os.environ)
    yield str(tmp_path / "shop.py")
    os.environ.clear()
    os.environ.update(before)


def test_the_streams_with_a_reader_are_audited(reference: str) -> None:
    assert selected(reference, AuditOptions())[1] == ("orders",)
    with raises_code(PipelineError, "audit-reader-missing"):
        selected(reference, AuditOptions(streams=("other",)))
    for options in (AuditOptions(streams=("none",)), AuditOptions(variables={"AUDITED": "{run}-orders"})):
        with raises_code(NotFound, "stream-unknown"):
            selected(reference, options)


@pytest.mark.parametrize("sink", SINGLE, ids=lambda sink: sink.kind)
def test_sinks_that_call_a_function(sink: Sink) -> None:
    if sink.traits.combines or sink.kind in {"foreach", "all_of"}:
        check_drilled(sink, "shop/orders")
        return
    with raises_code(PipelineError, "audit-sink"):
        check_drilled(sink, "shop/orders")


def test_a_reader_is_one_function() -> None:
    pipeline = Pipeline("shop")
    pipeline.audit_reader("orders")(print)
    not_a_function: Any = "orders"
    for stream, function in (("orders", print), ("other", not_a_function)):
        with raises_code(PipelineError, "audit-reader"):
            pipeline.audit_reader(stream)(function)
