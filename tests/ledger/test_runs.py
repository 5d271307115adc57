from __future__ import annotations

from pathlib import Path

from slackwater.core.errors import NotFound
from slackwater.core.records import OperationRecord
from slackwater.ledger.lease import Lease, is_running, view_of
from slackwater.ledger.ledger import Ledger
from tests.support.errors import raises_code
from tests.support.ledgers import STREAM, Clock


def test_a_run_has_no_end_until_it_is_ended(ledger: Ledger, clock: Clock) -> None:
    run = ledger.begin_run(STREAM, 1, "4.1.3")
    assert (run.started_ms, run.ended_ms, run.end) == (clock.now_ms, None, None)
    assert ledger.last_run(STREAM) == run
    clock.forward(5)
    ended = ledger.end_run(run.id, "failed", "java.lang.OutOfMemoryError")
    assert (ended.ended_ms, ended.end, ended.reason) == (clock.now_ms, "failed", "java.lang.OutOfMemoryError")
    assert ledger.runs(STREAM) == [ended]


def test_a_run_is_recorded_with_its_settings_code_and_failure(ledger: Ledger) -> None:
    settings = {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "Asia/Tokyo"}
    run = ledger.begin_run(STREAM, 1, "4.1.3", settings=settings, code="ab" * 32, trigger_ms=10_000)
    assert (run.settings, run.code, run.failure, run.failure_code) == (settings, "ab" * 32, None, None)
    assert run.trigger_ms == 10_000
    ended = ledger.end_run(run.id, "failed", "ValueError: no", failure="permanent", failure_code="user-function")
    assert (ended.failure, ended.failure_code) == ("permanent", "user-function")
    assert ledger.run(run.id) == ended == ledger.last_run(STREAM)
    assert ended.settings == settings


def test_a_run_without_recorded_settings_has_none(ledger: Ledger) -> None:
    run = ledger.begin_run(STREAM, 1, "4.1.3")
    assert (run.settings, run.code) == (None, None)


def test_a_run_that_was_killed_has_ended_once_the_next_one_begins(ledger: Ledger, clock: Clock) -> None:
    killed = ledger.begin_run(STREAM, 1, "4.1.3")
    clock.forward(60)
    active = ledger.begin_run(STREAM, 1, "4.1.3")
    first, second = ledger.runs(STREAM)
    assert (first.id, first.end, first.ended_ms) == (killed.id, "killed", clock.now_ms)
    assert first.reason == "the driver exited without recording an end"
    assert second == active
    assert ledger.last_run(STREAM) == active


def test_a_run_is_running_although_the_clock_was_set_back(ledger: Ledger, clock: Clock, tmp_path: Path) -> None:
    with Lease.acquire(ledger, STREAM, tmp_path, "run") as lease:
        clock.forward(-3600)
        run = ledger.begin_run(STREAM, 1, "4.1.3")
        assert run.started_ms == lease.record.acquired_ms
        assert is_running(run, view_of(ledger, STREAM))


def test_a_stop_reaches_the_active_run(ledger: Ledger, clock: Clock) -> None:
    run = ledger.begin_run(STREAM, 1, "4.1.3")
    assert not ledger.stop_requested(run.id)
    asked = ledger.request_stop(STREAM)
    assert asked is not None
    assert (asked.id, asked.stop_requested_ms) == (run.id, clock.now_ms)
    assert ledger.stop_requested(run.id)


def test_asking_twice_keeps_the_first_time(ledger: Ledger, clock: Clock) -> None:
    ledger.begin_run(STREAM, 1, "4.1.3")
    first = ledger.request_stop(STREAM)
    clock.forward(3)
    assert ledger.request_stop(STREAM) == first


def test_there_is_nothing_to_stop_where_no_run_is_active(ledger: Ledger) -> None:
    assert ledger.request_stop(STREAM) is None
    run = ledger.begin_run(STREAM, 1, "4.1.3")
    ledger.end_run(run.id, "stopped")
    assert ledger.request_stop(STREAM) is None
    assert not ledger.stop_requested(run.id)


def test_a_stop_is_not_meant_for_the_next_run(ledger: Ledger) -> None:
    ledger.begin_run(STREAM, 1, "4.1.3")
    ledger.request_stop(STREAM)
    assert not ledger.stop_requested(ledger.begin_run(STREAM, 1, "4.1.3").id)


def test_an_unknown_run_cannot_end(ledger: Ledger) -> None:
    with raises_code(NotFound, "run-unknown"):
        ledger.end_run(99, "stopped")


def test_an_operation_is_open_until_it_has_ended(ledger: Ledger, clock: Clock) -> None:
    started = OperationRecord("20260131-1", STREAM, "rebuild", "applying", clock.now_ms)
    ledger.begin_operation(started)
    assert ledger.open_operation(STREAM) == started
    clock.forward(2)
    ledger.end_operation(started.id, "applied", "generation 2 from batch 41")
    assert ledger.open_operation(STREAM) is None
    (ended,) = ledger.operations(STREAM)
    assert (ended.status, ended.summary, ended.ended_ms) == ("applied", "generation 2 from batch 41", clock.now_ms)
    clock.forward(2)
    ledger.end_operation(started.id, "pruned", "can no longer be undone")
    (pruned,) = ledger.operations(STREAM)
    assert (pruned.status, pruned.ended_ms) == ("pruned", ended.ended_ms), "its end is when it ended"


def test_a_continued_operation_is_open_again_under_its_own_id(ledger: Ledger, clock: Clock) -> None:
    started = OperationRecord("20260131-1", STREAM, "rebuild", "applying", clock.now_ms)
    ledger.begin_operation(started)
    ledger.end_operation(started.id, "unknown", "the disk was full")
    ledger.begin_operation(started)
    assert ledger.open_operation(STREAM) == started
    assert ledger.operations(STREAM) == [started]


def test_an_unknown_operation_cannot_end(ledger: Ledger) -> None:
    with raises_code(NotFound, "operation-unknown"):
        ledger.end_operation("nothing", "applied", "")
