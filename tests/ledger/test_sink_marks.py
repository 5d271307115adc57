from __future__ import annotations

from slackwater.core.records import SinkMark
from slackwater.ledger.ledger import Ledger
from tests.support.ledgers import STREAM, Clock


def test_a_mark_is_recorded_when_the_sink_has_moved(ledger: Ledger, clock: Clock) -> None:
    assert ledger.last_sink_mark(STREAM) is None
    ledger.record_sink_mark(STREAM, 4)
    first_ms = clock.now_ms
    clock.forward(60)
    ledger.record_sink_mark(STREAM, 4)
    assert ledger.sink_marks(STREAM) == [SinkMark(STREAM, first_ms, 4)]
    ledger.record_sink_mark(STREAM, 6)
    assert ledger.last_sink_mark(STREAM) == SinkMark(STREAM, clock.now_ms, 6)


def test_a_batch_that_is_written_and_not_committed_is_recorded(ledger: Ledger) -> None:
    ledger.record_sink_mark(STREAM, 4, 4)
    ledger.record_sink_mark(STREAM, 5, 4)
    ledger.record_sink_mark(STREAM, 5, 4)
    ledger.record_sink_mark(STREAM, 5, 5)
    assert [(mark.written, mark.committed) for mark in ledger.sink_marks(STREAM)] == [(4, 4), (5, 4), (5, 5)]


def test_two_marks_of_one_millisecond_are_both_kept(ledger: Ledger, clock: Clock) -> None:
    ledger.record_sink_mark(STREAM, 4)
    ledger.record_sink_mark(STREAM, -1)
    assert [mark.written for mark in ledger.sink_marks(STREAM)] == [4, -1]
    assert ledger.last_sink_mark(STREAM) == SinkMark(STREAM, clock.now_ms + 1, -1)
