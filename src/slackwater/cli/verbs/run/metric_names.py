"""The Prometheus metrics of a run: names, kinds, labels and meanings. Each has the labels ``pipeline`` and
``stream``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

STATES = ("running", "draining", "waiting", "finished", "stopped", "interrupted", "failed", "not-started")
"""Values of ``slackwater_stream_state``; ``waiting`` is for a restart after a failure."""


@dataclass(frozen=True, slots=True)
class MetricName:
    """``key`` is its name in the code; ``labels`` are in addition to pipeline and stream."""

    key: str
    name: str
    kind: Literal["gauge", "counter", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


BATCH_SECONDS = MetricName(
    "batch_seconds",
    "slackwater_batch_duration_seconds",
    "histogram",
    "Duration of batches, from trigger to commit (triggerExecution of Spark's progress)",
    buckets=(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600),
)

COUNTED = (
    MetricName("batches", "slackwater_batches_total", "counter", "Batches that this run has finished"),
    MetricName("input_rows", "slackwater_input_rows_total", "counter", "Rows that these batches have read"),
    MetricName(
        "output_rows",
        "slackwater_output_rows_total",
        "counter",
        "Rows that these batches have written, of sinks that report it",
    ),
    MetricName(
        "late_rows",
        "slackwater_late_rows_total",
        "counter",
        "Rows that these batches have dropped because they were later than the watermark",
    ),
    MetricName(
        "restarts", "slackwater_restarts_total", "counter", "Restarts of the query after transient failures in this run"
    ),
    BATCH_SECONDS,
    MetricName("state", "slackwater_stream_state", "gauge", "1 for the state that the stream is in", ("state",)),
)

READ_AT_REQUEST = (
    MetricName("readable", "slackwater_stream_readable", "gauge", "1 if ledger, checkpoint and output can be read"),
    MetricName(
        "marks",
        "slackwater_mark_batch_id",
        "gauge",
        "Newest batch that is planned, committed, has state that can be loaded, or is written; -1 for none",
        ("mark",),
    ),
    MetricName("lag_rows", "slackwater_lag_rows", "gauge", "Rows in the sources after the newest batch, where known"),
    MetricName("lag_files", "slackwater_lag_files", "gauge", "Files in the sources that no batch has read"),
    MetricName("lag_bytes", "slackwater_lag_bytes", "gauge", "Bytes of these files"),
    MetricName(
        "lag_seconds",
        "slackwater_lag_seconds",
        "gauge",
        "Time since the stream had read all that its sources have, or since this run started; 0 if it has",
    ),
    MetricName(
        "watermark", "slackwater_watermark_timestamp_seconds", "gauge", "Watermark of the next batch, as a Unix time"
    ),
    MetricName("watermark_age", "slackwater_watermark_age_seconds", "gauge", "Time from that watermark to now"),
    MetricName("state_rows", "slackwater_state_rows", "gauge", "Rows in the state of all operators"),
    MetricName("state_bytes", "slackwater_state_bytes", "gauge", "Memory that the state stores use (memoryUsedBytes)"),
    MetricName(
        "last_batch",
        "slackwater_last_batch_timestamp_seconds",
        "gauge",
        "When this run finished its newest batch, as a Unix time",
    ),
    MetricName("findings", "slackwater_findings", "gauge", "Findings of the number line, by severity", ("severity",)),
)

METRICS = {metric.key: metric for metric in (*COUNTED, *READ_AT_REQUEST)}
