"""The pending no-data batch, which a restart forgets.

A running query follows a batch that advanced the watermark with a batch without data, which writes the windows that the
watermark closed and drops the rows that it made late. Spark decides on it from the last execution
(``lastExecution.shouldRunAnotherBatch`` in ``MicroBatchExecution``), which a restarted query lacks: the batch would
wait for new data, and rows that an uninterrupted run drops as late would be counted. With its entry in ``offsets/``
Spark runs it as a planned batch (measured: exact, 4.1.3).
"""

from __future__ import annotations

from slackwater.checkpoint.logs import CheckpointLogs
from slackwater.core.checkpoint import OffsetEntry
from slackwater.core.program import QueryProfile

NO_DATA_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"


def no_data_entry(
    logs: CheckpointLogs, profile: QueryProfile | None, output_mode: str, *, enabled: bool, now_ms: int
) -> OffsetEntry | None:
    """The pending batch's entry, if any.

    Without a ``profile``, state counts as an operator on event time. ``enabled`` is
    ``spark.sql.streaming.noDataMicroBatches.enabled``.
    """
    entry, commit = logs.newest_offset, logs.newest_commit
    if entry is None or entry.metadata is None or commit is None or logs.planned != logs.committed:
        return None
    if not enabled or not _asks_for_batches(profile, output_mode):
        return None
    if commit.next_batch_watermark_ms <= entry.metadata.batch_watermark_ms:
        return None
    # `current_timestamp()` and timeouts in processing time read this time, which has to be that of planning, as in
    # Spark.
    metadata = entry.metadata._replace(batch_watermark_ms=commit.next_batch_watermark_ms, batch_timestamp_ms=now_ms)
    return entry._replace(metadata=metadata)


def _asks_for_batches(profile: QueryProfile | None, output_mode: str) -> bool:
    if profile is None:
        return output_mode != "complete"
    return bool(profile.watermark_delays_ms) and bool(profile.operators) and profile.asks_for_batches
