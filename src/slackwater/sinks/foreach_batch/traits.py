"""Traits with and without a declared database."""

from __future__ import annotations

from dataclasses import replace

from slackwater.core.sink import CatalogueEntry, Delivery
from slackwater.sinks.common.mark import marked_traits
from slackwater.sinks.common.opaque_output import opaque_traits

UNMARKED = replace(
    opaque_traits(
        Delivery("at-least-once", "the function is called again for a batch that was interrupted"), one_writer=False
    ),
    combines=True,
)
MARKED = marked_traits("the function writes in the transaction that marks the batch as written")
ENTRIES = (
    CatalogueEntry("foreach_batch", "foreach_batch(function, writes_to=url)", MARKED, rank=70),
    CatalogueEntry("foreach_batch", "foreach_batch(function)", UNMARKED, rank=110),
)
