"""Queries with timers on processing time: Spark plans one batch after another for them, also without data.

``available-now`` ends a query where no batch has to be planned (``MicroBatchExecution.constructNextBatch``). With a
timeout or a time-to-live on processing time there is always one, as ``shouldRunAnotherBatch`` is true after each batch
(``FlatMapGroupsWithStateExec``, ``TransformWithStateExec``). Such a query is caught up once its sources are at the
positions that they fixed when it started: from then on each batch starts and ends there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slackwater.runtime.logical_plan import analysed_plan, class_name, nodes_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

TIMEOUT = "ProcessingTimeTimeout"
TIME_MODE = "ProcessingTime"
BATCHES = 2
"""Batches without data under one watermark: the first may still have advanced that of a later operator."""


def has_processing_time_timers(frame: DataFrame) -> bool:
    """Whether a stateful operator of the query has timers on processing time."""
    return any(_has_timers(node) for node in nodes_of(analysed_plan(frame)))


def _has_timers(node: Any) -> bool:
    name = class_name(node)
    if name.startswith("FlatMapGroups") and name.endswith("WithState"):
        return str(node.timeout()) == TIMEOUT
    return name.startswith("TransformWithState") and str(node.timeMode()).startswith(TIME_MODE)


def has_read_all(query: StreamingQuery, planned_before: int) -> bool:
    """Whether the newest batches of a query, all planned by this run, have read nothing though they could have."""
    newest = query.recentProgress[-BATCHES:]
    batches = {progress["batchId"] for progress in newest}
    # Spark 3.5 leaves out what is empty.
    watermarks = {progress.get("eventTime", {}).get("watermark") for progress in newest}
    return (
        len(batches) == BATCHES
        and min(batches) > planned_before
        and len(watermarks) == 1
        and not any(_has_read(source) for progress in newest for source in progress["sources"])
    )


def _has_read(source: Any) -> bool:
    return bool(source["numInputRows"]) or source["startOffset"] != source["endOffset"]
