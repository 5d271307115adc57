"""The source ``rate`` in continuous mode.

Facts: docs/format.md, section 6.
"""

from __future__ import annotations

from slackwater.sources.common.contract import SourceEntries
from slackwater.sources.common.shapes import is_index
from slackwater.sources.common.source import Source


class RateContinuous(Source):
    kind = "rate-continuous"
    formats = frozenset({"rate"})

    def owns(self, offset: object, log: SourceEntries) -> bool:
        return isinstance(offset, dict) and bool(offset) and all(map(_is_partition, offset.items()))


def _is_partition(item: tuple[str, object]) -> bool:
    name, position = item
    return is_index(name) and isinstance(position, dict) and position.keys() == {"value", "runTimeMs"}


SOURCE = RateContinuous()
