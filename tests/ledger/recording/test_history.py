"""What is known of the batches of a query that was watched, and of those that a run executed."""

from __future__ import annotations

from pathlib import Path

from slackwater.core.records import BatchRecord, BatchSource, GenerationRecord
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.recording.history import history_of
from tests.support.ledgers import STREAM, stream_record

SOURCE = BatchSource("FileStreamSource[file:/landing]", '{"logOffset":1}', '{"logOffset":2}', None, 0)


def test_a_watched_batch_without_rows_may_have_been_skipped_by_its_output(sqlite_url: str, tmp_path: Path) -> None:
    with Ledger.open(sqlite_url, create=False) as ledger:
        stream = stream_record(STREAM.partition("/")[2])
        ledger.register_stream(stream, GenerationRecord(STREAM, 1, str(tmp_path)))
        watched = BatchRecord(STREAM, 1, 3, 0, input_rows=0, sources=(SOURCE,))
        ledger.record_batch(watched)
        run = ledger.begin_run(STREAM, 1, "4.1.3")
        ledger.record_batch(watched._replace(batch_id=4, run=run.id))
        ledger.record_batch(watched._replace(batch_id=5, input_rows=2))

        history = history_of(ledger, ledger.stream(STREAM))

    assert history.skipped == {3}
