"""Sources with a bare number as offset and no log: socket and memory.

The number counts different things, so nothing is derived from it.
"""

from __future__ import annotations

from slackwater.sources.common.contract import SourceEntries
from slackwater.sources.common.shapes import is_long, log_shape
from slackwater.sources.common.source import Source


class Number(Source):
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
