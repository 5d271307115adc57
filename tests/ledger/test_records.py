"""What a ledger records of streams, runs, batches and marks, on each database that it may be kept in."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from slackwater.core.errors import NotFound, UsageError
from slackwater.core.program import MOST, entries_until, made_by, program_of_batch, with_started
from slackwater.core.records import (
    WATCHED,
    BatchRecord,
    BatchSource,
    GenerationRecord,
    LogLine,
    OperationRecord,
    SinkMark,
    StreamRecord,
)
from slackwater.ledger.home import Home, streams_of
from slackwater.ledger.lease import Lease, is_running, view_of
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.recording.stream_files import restore_lost, write_stream_file_of
from slackwater.ledger.workspace import find_stream, stream_at
from tests.support.errors import raises_code
from tests.support.ledgers import STREAM, Clock, stream_record


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


def test_a_stream_is_found_by_its_name_and_by_its_full_name(ledger: Ledger) -> None:
    assert ledger.find_stream("hourly") == stream_record()
    assert ledger.find_stream("weather/hourly") == stream_record()
    assert ledger.streams() == [stream_record()]


def test_an_unknown_stream_is_reported_with_the_nearest_name(ledger: Ledger) -> None:
    with raises_code(NotFound, "stream-unknown", hint="did you mean hourly? known streams: weather/hourly"):
        ledger.find_stream("houly")


def test_a_name_that_two_pipelines_share_must_be_given_in_full(ledger: Ledger) -> None:
    ledger.register_stream(stream_record(pipeline="tides"), GenerationRecord("tides/hourly", 1, "/home/tides/0001"))
    with raises_code(UsageError, "stream-ambiguous"):
        ledger.find_stream("hourly")
    assert ledger.find_stream("tides/hourly").pipeline == "tides"


def test_a_full_name_comes_before_the_name_of_a_watched_query(ledger: Ledger) -> None:
    ledger.register_stream(stream_record(STREAM, WATCHED), GenerationRecord(f"{WATCHED}/{STREAM}", 1, "/elsewhere"))
    assert ledger.find_stream(STREAM) == stream_record()
    assert ledger.find_stream(f"{WATCHED}/{STREAM}").pipeline == WATCHED


def test_registering_again_changes_what_the_run_says_but_not_the_generation_in_use(ledger: Ledger) -> None:
    ledger.add_generation(GenerationRecord(STREAM, 2, "/home/checkpoints/0002", based_at=7))
    ledger.set_current_generation(STREAM, 2)
    ledger.register_stream(stream_record()._replace(pipeline_file="other.py", output_mode="update"))
    found = ledger.find_stream("hourly")
    assert (found.pipeline_file, found.output_mode, found.current_generation) == ("other.py", "update", 2)


def test_a_generation_that_was_never_added_cannot_be_put_to_use(ledger: Ledger) -> None:
    with raises_code(NotFound, "generation-unknown", found="1"):
        ledger.set_current_generation(STREAM, 5)
    assert ledger.find_stream("hourly").current_generation == 1


LAYOUT = {"operators": ["Aggregate"], "watermark_delays_ms": [1], "windows_ms": [], "sources": [], "retention_ms": None}


def test_a_generation_comes_back_as_it_was_added(ledger: Ledger) -> None:
    second = GenerationRecord(
        STREAM,
        2,
        "/home/checkpoints/0002",
        query_id="8f6b",
        based_at=7,
        layout={**LAYOUT, "state_stores": [{"operator": 0}]},
        parent=1,
        source_cut={"0": 12, "orders": -1},
    )
    ledger.add_generation(second)
    assert ledger.generation(STREAM, 2) == second
    assert [generation.number for generation in ledger.generations(STREAM)] == [1, 2]


def test_what_is_known_later_is_filled_in_without_losing_the_rest(ledger: Ledger) -> None:
    ledger.update_generation(STREAM, 1, query_id="8f6b")
    ledger.update_generation(STREAM, 1, layout=LAYOUT)
    generation = ledger.generation(STREAM, 1)
    assert (generation.query_id, generation.layout, generation.location) == ("8f6b", LAYOUT, "/home/checkpoints/0001")


def test_a_generation_of_an_unknown_stream_is_refused(ledger: Ledger) -> None:
    with raises_code(NotFound, "generation-unknown"):
        ledger.add_generation(GenerationRecord("weather/daily", 1, "/nowhere"))


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


BATCH = BatchRecord(
    STREAM,
    generation=1,
    batch_id=7,
    timestamp_ms=1_704_067_200_000,
    input_rows=120,
    sources=(
        BatchSource(
            "KafkaV2[Subscribe[clicks]]", '{"clicks":{"0":4}}', '{"clicks":{"0":9}}', '{"clicks":{"0":12}}', 100
        ),
        BatchSource("FileStreamSource[file:/landing]", None, '{"logOffset":3}', None, 20),
    ),
    watermark_ms=0,
    event_time_min_ms=1_704_067_100_000,
    event_time_max_ms=1_704_067_200_000,
    late_rows=3,
    state_rows=10_000_000_000,
    output_rows=None,
    durations_ms={"addBatch": 812, "walCommit": 31},
    run=4,
)


def test_a_batch_comes_back_as_it_was_recorded(ledger: Ledger) -> None:
    ledger.record_batch(BATCH)
    assert ledger.batch(STREAM, 7) == BATCH
    assert ledger.batch(STREAM, 8) is None


def test_a_batch_that_ran_again_replaces_what_was_recorded(ledger: Ledger) -> None:
    ledger.record_batch(BATCH)
    again = BATCH._replace(timestamp_ms=BATCH.timestamp_ms + 60_000, output_rows=12)
    ledger.record_batch(again)
    assert ledger.batches(STREAM) == [again]


def test_batches_are_listed_in_order_with_both_ends(ledger: Ledger) -> None:
    for batch_id in (11, 9, 10, 8):
        ledger.record_batch(BATCH._replace(batch_id=batch_id))
    assert [batch.batch_id for batch in ledger.batches(STREAM)] == [8, 9, 10, 11]
    assert [batch.batch_id for batch in ledger.batches(STREAM, 9, 10)] == [9, 10]
    assert [batch.batch_id for batch in ledger.batches(STREAM, first=10)] == [10, 11]
    assert [batch.batch_id for batch in ledger.batches(STREAM, last=8)] == [8]


def test_batches_that_an_operation_discarded_do_not_come_back(ledger: Ledger) -> None:
    for batch_id in range(6):
        ledger.record_batch(BATCH._replace(batch_id=batch_id, input_rows=1))
    ledger.add_generation(GenerationRecord(STREAM, 2, "/home/checkpoints/0002", based_at=3))
    ledger.record_batch(BATCH._replace(generation=2, batch_id=3, input_rows=2))
    ledger.record_batch(BATCH._replace(generation=2, batch_id=4, input_rows=2))
    ledger.set_current_generation(STREAM, 2)
    in_use = [(batch.batch_id, batch.generation) for batch in ledger.batches(STREAM)]
    assert in_use == [(0, 1), (1, 1), (2, 1), (3, 2), (4, 2)]
    assert [batch.batch_id for batch in ledger.batches(STREAM, generation=1)] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "text",
    [
        'v1\n{"batchWatermarkMs":0,"conf":{}}\n{"logOffset":5}',
        '\0v1\n{"clicks":{"0":0}}',
        'v1\n{"path":"file:///landing/Zürich%20Ä.json"}',
        "v1\n\udcff\udc80 bytes that are no UTF-8",
        "v1\r\n",
    ],
)
def test_a_line_is_kept_verbatim(ledger: Ledger, text: str) -> None:
    ledger.record_lines([LogLine(STREAM, 1, "sources/0", 0, text)])
    assert ledger.lines(STREAM, "sources/0") == {0: text}
    assert ledger.own_lines(STREAM, 1, "sources/0", [0, 1]) == {0: text}


def test_lines_are_listed_in_order_with_both_ends(ledger: Ledger) -> None:
    ledger.record_lines([LogLine(STREAM, 1, "offsets", entry, f"v1\n{entry}") for entry in (12, 3, 7, 101)])
    assert list(ledger.lines(STREAM, "offsets")) == [3, 7, 12, 101]
    assert list(ledger.lines(STREAM, "offsets", 7, 12)) == [7, 12]
    assert ledger.recorded_entries(STREAM, 1, "offsets") == {3, 7, 12, 101}
    assert ledger.recorded_entries(STREAM, 1, "commits") == set()
    assert ledger.logs(STREAM) == ["offsets"]


def test_recording_an_entry_again_takes_the_new_text(ledger: Ledger) -> None:
    ledger.record_lines([LogLine(STREAM, 1, "offsets", 3, "v1\nold"), LogLine(STREAM, 1, "offsets", 4, "v1\nkept")])
    ledger.record_lines([LogLine(STREAM, 1, "offsets", 3, "v1\nnew")])
    assert ledger.lines(STREAM, "offsets") == {3: "v1\nnew", 4: "v1\nkept"}


def test_lines_are_recorded_all_or_none(ledger: Ledger) -> None:
    lines = [LogLine(STREAM, 1, "offsets", 3, "v1\n"), LogLine(STREAM, 9, "offsets", 4, "v1\n")]
    with pytest.raises(NotFound):
        ledger.record_lines(lines)
    assert ledger.lines(STREAM, "offsets") == {}


def test_recording_nothing_is_no_error(ledger: Ledger) -> None:
    ledger.record_lines([])
    assert ledger.lines(STREAM, "offsets") == {}


def test_more_lines_than_a_statement_can_hold(ledger: Ledger) -> None:
    ledger.record_lines(LogLine(STREAM, 1, "sources/0", entry, "v1\n{}") for entry in range(25_000))
    assert ledger.recorded_entries(STREAM, 1, "sources/0") == set(range(25_000))


OLD, NEW, NEWER = {"keys": "old"}, {"keys": "new"}, {"keys": "newer"}


def test_the_program_of_a_batch_is_the_newest_that_was_started_before_it() -> None:
    entries = with_started(with_started(None, OLD, -1), NEW, 4)

    assert [program_of_batch(entries, batch) for batch in (-1, 0, 4, 5, 90)] == [None, OLD, OLD, NEW, NEW]


def test_a_program_that_committed_nothing_made_nothing() -> None:
    entries = with_started(with_started(None, OLD, -1), NEW, 4)

    assert program_of_batch(entries, 4) == OLD
    assert with_started(entries, OLD, 4) == made_by(OLD)
    assert with_started(entries, NEWER, 4) == [*made_by(OLD), {"after": 4, "program": NEWER}]


def test_the_same_program_again_adds_nothing() -> None:
    entries = with_started(made_by(OLD), OLD, 7)

    assert entries == made_by(OLD)


def test_batches_of_an_earlier_version_have_no_program() -> None:
    entries = with_started(None, NEW, 7)

    assert (program_of_batch(entries, 7), program_of_batch(entries, 8)) == (None, NEW)


def test_copied_state_inherits_the_programs_up_to_its_batch() -> None:
    entries = with_started(with_started(None, OLD, -1), NEW, 4)

    assert entries_until(entries, 4) == made_by(OLD)


def test_only_the_newest_programs_are_kept() -> None:
    entries: Sequence[Mapping[str, object]] = []
    for batch in range(3 * MOST):
        entries = with_started(entries, {"version": batch}, batch)

    assert len(entries) == MOST


def test_programs_and_accepted_changes_are_recorded(ledger: Ledger) -> None:
    programs = with_started(made_by(OLD), NEW, 3)
    ledger.update_generation(STREAM, 1, programs=programs)
    run = ledger.begin_run(STREAM, 1, "4.1.3", program="ab" * 32, accepted={"codes": ["keys-changed"], "by": "ann"})

    assert ledger.generation(STREAM, 1).programs == programs
    assert ledger.last_run(STREAM) == run
    assert (run.program, run.accepted) == ("ab" * 32, {"codes": ["keys-changed"], "by": "ann"})


def test_a_lost_ledger_is_restored_with_the_programs(ledger: Ledger, tmp_path: Path) -> None:
    home, programs = Home(tmp_path), with_started(made_by(OLD), NEW, 3)
    ledger.update_generation(STREAM, 1, programs=programs)
    write_stream_file_of(home, ledger, STREAM)

    with Ledger.open(tmp_path / "ledger.db", create=True) as restored:
        restore_lost(home, restored, streams_of(home))
        assert restored.generation(STREAM, 1).programs == programs


# Streams by the location of their checkpoint in use.


@pytest.mark.parametrize(
    "spelling",
    [
        "s3a://bucket/checkpoints/clicks",
        "s3://bucket/checkpoints/clicks/",
        "s3n://bucket/checkpoints/clicks",
        "S3A://bucket/checkpoints/clicks",
    ],
)
def test_a_location_on_a_store_has_several_spellings(tmp_path: Path, spelling: str) -> None:
    stream = StreamRecord(WATCHED, "clicks", {"kind": "unknown"}, "append", "")
    with Ledger.open(tmp_path / "ledger.db", create=True) as ledger:
        ledger.register_stream(stream, GenerationRecord(stream.full_name, 1, "s3a://bucket/checkpoints/clicks"))
        assert find_stream(ledger, spelling).full_name == stream.full_name
        assert stream_at(ledger, "s3a://bucket/checkpoints") is None


def test_a_local_location_is_found_by_a_link_and_after_it_was_deleted(tmp_path: Path) -> None:
    stream, place = StreamRecord(WATCHED, "clicks", {"kind": "unknown"}, "append", ""), tmp_path / "data/clicks"
    (tmp_path / "link").symlink_to(tmp_path / "data")
    with Ledger.open(tmp_path / "ledger.db", create=True) as ledger:
        ledger.register_stream(stream, GenerationRecord(stream.full_name, 1, str(place)))
        for spelling in (str(place), f"{place}/", place.as_uri(), f"{tmp_path}/link/clicks", f"{place}/../clicks"):
            assert find_stream(ledger, spelling).full_name == stream.full_name, spelling


def test_a_full_name_that_looks_like_a_path(tmp_path: Path) -> None:
    stream = StreamRecord(WATCHED, "a/b", {"kind": "unknown"}, "append", "")
    with Ledger.open(tmp_path / "ledger.db", create=True) as ledger:
        ledger.register_stream(stream, GenerationRecord(stream.full_name, 1, "/data/clicks"))
        assert find_stream(ledger, "watched/a/b") == stream
