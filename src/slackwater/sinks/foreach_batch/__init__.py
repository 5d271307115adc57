"""A user's batch function, with means to write each batch once."""

from dataclasses import replace

from slackwater.core.sink import CatalogueEntry, Delivery, Traits
from slackwater.sinks.common.directory import marked_traits
from slackwater.sinks.common.registry import SinkKind

UNMARKED = replace(
    Traits(
        Delivery("at-least-once", "the function is called again for a batch that was interrupted"), one_writer=False
    ),
    combines=True,
)
MARKED = marked_traits("the function writes in the transaction that marks the batch as written")
ENTRIES = (
    CatalogueEntry("foreach_batch", "foreach_batch(function, writes_to=url)", MARKED, rank=70),
    CatalogueEntry("foreach_batch", "foreach_batch(function)", UNMARKED, rank=110),
)

SINK = SinkKind(
    opener="slackwater.sinks.foreach_batch.sink:open_foreach_batch_output",
    constructor="slackwater.sinks.foreach_batch.sink:foreach_batch",
    exports=("Batch", "ForeachBatchSink"),
    recognise="slackwater.sinks.foreach_batch.sink:recognise",
    entries=ENTRIES,
)
