"""The source ``rate`` in micro-batches.

Facts: docs/format.md, section 6.
"""

from __future__ import annotations

from slackwater.sources.common.contract import SourceEntries
from slackwater.sources.common.shapes import is_long, log_shape
from slackwater.sources.common.source import Source


class Rate(Source):
    """Seconds since the source was created; ``sources/<source>/0`` holds the time of creation."""

    kind = "rate"
    formats = frozenset({"rate"})
    harmless_options = frozenset({"numpartitions", "ramuptime", "rampuptime", "rowspersecond"})

    def owns(self, offset: object, log: SourceEntries) -> bool:
        return (offset is None or is_long(offset)) and log_shape(log) == "rate"


SOURCE = Rate()
