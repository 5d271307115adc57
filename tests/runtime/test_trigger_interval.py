"""The time between two batches that a trigger asks for, as a run records it."""

import threading
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from slackwater.core.program import Trigger
from slackwater.runtime.replay import replay_query
from slackwater.runtime.replay.replay_query import _TriggerClock
from slackwater.runtime.run.stream_run import has_read_all
from slackwater.triggers import available_now, continuous, once, processing_time, waits_ms


@pytest.mark.parametrize(
    ("trigger", "expected"),
    [
        (processing_time("10 seconds"), 10_000),
        (processing_time("interval 1 HOUR 30 minutes"), 5_400_000),
        (processing_time("0 seconds"), None),
        (available_now(), None),
        (once(), None),
        (continuous("1 second"), None),
        (Trigger("processing-time"), None),
    ],
)
def test_only_a_trigger_that_waits_has_an_interval(trigger: Trigger, expected: int | None) -> None:
    assert waits_ms(trigger) == expected


def test_a_batch_that_ends_before_the_answer_is_read_was_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine the query's thread may wait for the next batch before the caller's thread runs again."""
    monkeypatch.setattr(replay_query, "_release", lambda *_: None)
    execution = MagicMock()
    execution.isActive.return_value = False
    clock = _TriggerClock(execution)
    turns = [threading.Event(), threading.Event()]

    def run_batches() -> None:
        for turn in turns:
            turn.set()
            clock.waitTillTime(0)

    thread = threading.Thread(target=run_batches)
    thread.start()
    answered: Any = clock._answered
    wait = answered.wait

    def read_late() -> None:
        wait(30)
        assert turns[1].wait(30)
        assert clock.waiting.wait(30)

    monkeypatch.setattr(answered, "wait", read_late)
    assert clock.resume()
    clock.end()
    thread.join(30)
    assert not thread.is_alive()


# Whether a query with timers on processing time has read all, from progress as Spark 3.5 and Spark 4 report it.


IDLE = {"numInputRows": 0, "startOffset": {"logOffset": 4}, "endOffset": {"logOffset": 4}}
READING = {"numInputRows": 3, "startOffset": {"logOffset": 3}, "endOffset": {"logOffset": 4}}
WITHOUT_WATERMARK: tuple[dict[str, Any], ...] = ({}, {"eventTime": {}})
"""Of a query without a watermark: Spark 3.5 leaves the field out, Spark 4 has an empty one."""


def _query(*sources: dict[str, Any], **more: Any) -> Any:
    return SimpleNamespace(
        recentProgress=[{"batchId": 5 + n, "sources": [one], **more} for n, one in enumerate(sources)]
    )


@pytest.mark.parametrize("more", WITHOUT_WATERMARK)
def test_it_has_read_all_after_two_batches_that_read_nothing(more: dict[str, Any]) -> None:
    assert has_read_all(_query(READING, IDLE, IDLE, **more), planned_before=4)


@pytest.mark.parametrize("more", WITHOUT_WATERMARK)
@pytest.mark.parametrize("sources", [(IDLE,), (READING, IDLE), (IDLE, READING)])
def test_one_batch_does_not_show_it(sources: tuple[dict[str, Any], ...], more: dict[str, Any]) -> None:
    assert not has_read_all(_query(*sources, **more), planned_before=4)


def test_batches_of_an_earlier_run_do_not_show_it() -> None:
    assert not has_read_all(_query(IDLE, IDLE), planned_before=5)


def test_a_watermark_that_moves_does_not_show_it() -> None:
    query = _query(IDLE, IDLE)
    for minute, progress in enumerate(query.recentProgress):
        progress["eventTime"] = {"watermark": f"2026-01-01T00:0{minute}:00.000Z"}
    assert not has_read_all(query, planned_before=4)
