"""A PostgreSQL table, exactly once: executors stage a batch, the driver publishes it with the marker."""

from slackwater.core.sink import CatalogueEntry, Traits
from slackwater.sinks.common.directory import PUBLISHED_WITH_MARKER, marked_traits
from slackwater.sinks.common.registry import SinkKind


def traits_of(*, keep_batch_id: bool) -> Traits:
    return marked_traits(PUBLISHED_WITH_MARKER, cuts=keep_batch_id, swaps=True)


_KEPT, _PLAIN = traits_of(keep_batch_id=True), traits_of(keep_batch_id=False)
ENTRIES = (
    CatalogueEntry("postgres", "postgres(url, table, keep_batch_id=True)", _KEPT, ("append",), rank=40),
    CatalogueEntry("postgres", "postgres(url, table)", _PLAIN, ("append", "complete"), rank=41),
    CatalogueEntry("postgres", "postgres(url, table, keys=...)", _PLAIN, ("append", "update"), rank=42),
)

SINK = SinkKind(
    opener="slackwater.sinks.postgres.sink:open_postgres_output",
    constructor="slackwater.sinks.postgres.sink:postgres",
    exports=("PostgresSink",),
    entries=ENTRIES,
)
