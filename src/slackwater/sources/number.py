"""Sources whose offset is a bare number and that keep no log: socket and memory.

What the number counts differs between them, so nothing is derived from it.
"""

from __future__ import annotations

from slackwater.sources.common.contract import SourceEntries
from slackwater.sources.common.shapes import is_long, log_shape
from slackwater.sources.common.source import Source


class Number(Source):
    """A bare number, without a log that shows it to be a file source or a rate source."""

    kind = "number"
    label = "socket, memory or rate"
    words = "a source of numbers"
    formats = frozenset({"socket", "rate"})
    may_be_asked = False
    """A socket's rows go to the source that connects first."""

    serves_again = False

    def is_named(self, description: str) -> bool:
        return description in {"textSocket", "socket"}

    def owns(self, offset: object, log: SourceEntries) -> bool:
        return is_long(offset) and log_shape(log) not in {"files", "rate"}


SOURCE = Number()
