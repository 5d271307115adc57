"""A table of any SQLAlchemy database, exactly once: rows and marker in the same transaction."""

from slackwater.core.sink import CatalogueEntry
from slackwater.sinks.common.directory import PUBLISHED_WITH_MARKER, marked_traits
from slackwater.sinks.common.registry import SinkKind

JDBC_TRAITS = marked_traits(PUBLISHED_WITH_MARKER)
ENTRIES = (CatalogueEntry("jdbc", "jdbc(url, table)", JDBC_TRAITS, ("append", "complete"), rank=50),)

SINK = SinkKind(
    opener="slackwater.sinks.jdbc.sink:open_jdbc_output",
    constructor="slackwater.sinks.jdbc.sink:jdbc",
    exports=("JdbcSink",),
    entries=ENTRIES,
)
