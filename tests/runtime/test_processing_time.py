"""Whether a query with timers on processing time has read all, from progress as Spark 3.5 and Spark 4 report it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from slackwater.runtime.run.stream_run import has_read_all

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
