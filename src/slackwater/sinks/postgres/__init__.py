"""A PostgreSQL table, exactly once: executors stage a batch, the driver publishes it with the marker."""

from __future__ import annotations

from slackwater.sinks.common.registry import SinkKind

SINK = SinkKind(
    opener="slackwater.sinks.postgres.output:open_postgres_output",
    constructor="slackwater.sinks.postgres.sink:postgres",
    exports=("PostgresSink",),
    entries="slackwater.sinks.postgres.traits:ENTRIES",
)
