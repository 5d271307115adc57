"""A user's batch function, with means to write each batch once."""

from __future__ import annotations

from slackwater.sinks.common.registry import SinkKind

SINK = SinkKind(
    opener="slackwater.sinks.foreach_batch.sink:open_foreach_batch_output",
    constructor="slackwater.sinks.foreach_batch.sink:foreach_batch",
    exports=(
        "Batch",
        "ForeachBatchSink",
    ),
    recognise="slackwater.sinks.foreach_batch.sink:recognise",
    entries="slackwater.sinks.foreach_batch.traits:ENTRIES",
)
