from __future__ import annotations

import pytest

from slackwater.core.errors import NotFound
from slackwater.core.records import BatchRecord, BatchSource, GenerationRecord, LogLine
from slackwater.ledger.ledger import Ledger
from tests.support.ledgers import STREAM

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
    assert ledger.lines(STREAM, "offsets") == {
        3: "v1\nnew",
        4: "v1\nkept",
    }


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
