"""What is recorded of the end of a run decides on the pending no-data batch, also once an operation was applied."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from slackwater.core.checkpoint import OffsetEntry
from slackwater.core.records import BatchRecord, GenerationRecord, LogLine
from slackwater.formats.text_log import parse_offset_entry
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.lineage import AVAILABLE_NOW, CAUGHT_UP
from slackwater.runtime.run.no_data_batch import reached_end, was_caught_up
from tests.support.ledgers import stream_record

NAME = "weather/hourly"
FIRST = GenerationRecord(NAME, 1, "/checkpoints/0001")
REBUILT = GenerationRecord(NAME, 2, "/checkpoints/0002", based_at=1, parent=1, source_cut={"0": 1})
"""A rebuild at batch 1."""


def _entry(batch: int) -> str:
    return f'v1\n{{"batchWatermarkMs":0,"batchTimestampMs":{batch},"conf":{{}}}}\n{{"logOffset":{batch}}}'


def _parsed(batch: int) -> OffsetEntry:
    return parse_offset_entry(_entry(batch).encode())


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """Runs 1 and 2 of the first generation have ended by themselves, after batches 1 and 2."""
    with Ledger.open(tmp_path / "ledger.db", create=True) as opened:
        opened.register_stream(stream_record())
        opened.add_generation(FIRST)
        file = 'v1\n{{"path":"file:///in/{0}.json","timestamp":{0},"batchId":{0}}}'
        opened.record_lines(LogLine(NAME, 1, "sources/0", number, file.format(number)) for number in range(3))
        for run, batches in {1: (0, 1), 2: (2,)}.items():
            end = f'[{{"source": "0", "after": {batches[0] - 1}, "files": {len(batches)}}}]'
            opened.record_lines([LogLine(NAME, 1, AVAILABLE_NOW, run, end)])
            for batch in batches:
                opened.record_batch(BatchRecord(NAME, 1, batch, 0, 1, run=run))
                opened.record_lines([LogLine(NAME, 1, "offsets", batch, _entry(batch))])
        opened.record_lines(LogLine(NAME, 1, CAUGHT_UP, batch, _entry(batch)) for batch in (1, 2))
        opened.add_generation(REBUILT)
        yield opened


def test_what_the_sources_had_after_a_batch_is_known_in_the_next_generation(ledger: Ledger) -> None:
    assert was_caught_up(ledger, FIRST, 1, _entry(1))
    assert was_caught_up(ledger, REBUILT, 1, _entry(1))


def test_what_an_operation_has_discarded_is_not_known(ledger: Ledger) -> None:
    """Batch 2 of the new generation can be of other data."""
    assert was_caught_up(ledger, FIRST, 2, _entry(2))
    assert not was_caught_up(ledger, REBUILT, 2, _entry(2))
    assert not was_caught_up(ledger, REBUILT, 1, _entry(1).replace("1\n", "2\n"))


def test_where_a_run_ended_is_known_in_the_next_generation(ledger: Ledger) -> None:
    assert reached_end(ledger, FIRST, 2, _parsed(2)) == "end"
    assert reached_end(ledger, REBUILT, 1, _parsed(1)) == "end"


def test_a_run_that_had_data_left_is_known_there_too(ledger: Ledger) -> None:
    base = GenerationRecord(NAME, 3, "/checkpoints/0003", based_at=0, parent=1, source_cut={"0": 0})
    ledger.add_generation(base)

    assert reached_end(ledger, base, 0, _parsed(0)) == "before"


def test_of_a_batch_whose_run_is_unknown_nothing_is_known(ledger: Ledger) -> None:
    ledger.record_batch(BatchRecord(NAME, 1, 1, 0, 1, run=None))

    assert reached_end(ledger, REBUILT, 1, _parsed(1)) == "unknown"
    assert reached_end(ledger, REBUILT, 7, _parsed(1)) == "unknown"


def test_a_reset_gives_the_batch_other_positions(ledger: Ledger) -> None:
    assert reached_end(ledger, REBUILT, 1, _parsed(0)) == "unknown"
