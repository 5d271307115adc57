"""A table of any SQLAlchemy database, exactly once: rows and marker in the same transaction."""

from __future__ import annotations

from slackwater.sinks.common.registry import SinkKind

SINK = SinkKind(
    opener="slackwater.sinks.jdbc.output:open_jdbc_output",
    constructor="slackwater.sinks.jdbc.sink:jdbc",
    exports=("JdbcSink",),
    entries="slackwater.sinks.jdbc.traits:ENTRIES",
)
