"""Sources whose offset is a bare number and that keep no log: socket and memory.

What the number counts differs between them, so nothing is derived from it.
"""

from __future__ import annotations

from slackwater.sources.contract import SourceEntries
from slackwater.sources.opaque import OpaqueSource
from slackwater.sources.shapes import creation_time, is_long, lists_files


class Number(OpaqueSource):
    """A bare number, without a log that shows it to be a file source or a rate source."""

    kind = "number"

    def owns(self, offset: object, log: SourceEntries) -> bool:
        return is_long(offset) and not lists_files(log) and creation_time(log) is None
