"""Sources whose offset is a bare number and that keep no log: socket and memory.

What the number counts differs between them, so nothing is derived from it.
"""

from __future__ import annotations

from slackwater.sources.contract import SourceEntries
from slackwater.sources.opaque import OpaqueSource
from slackwater.sources.shapes import is_long, log_shape


class Number(OpaqueSource):
    """A bare number, without a log that shows it to be a file source or a rate source."""

    kind = "number"

    def owns(self, offset: object, log: SourceEntries) -> bool:
        return is_long(offset) and log_shape(log) not in {"files", "rate"}
