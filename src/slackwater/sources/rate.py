"""The rate sources: ``rate`` in micro-batches and in continuous mode, and ``rate-micro-batch``.

Facts: checkpoint-format section 6.
"""

from __future__ import annotations

from slackwater.sources.contract import SourceEntries, SourceRange
from slackwater.sources.opaque import OpaqueSource
from slackwater.sources.shapes import decoded, is_index, is_long, log_shape


class Rate(OpaqueSource):
    """Seconds since the source was created; ``sources/<source>/0`` holds the time of creation."""

    kind = "rate"

    def owns(self, offset: object, log: SourceEntries) -> bool:
        return (offset is None or is_long(offset)) and log_shape(log) == "rate"


class RateContinuous(OpaqueSource):
    """The last value and its time by partition."""

    kind = "rate-continuous"

    def owns(self, offset: object, log: SourceEntries) -> bool:
        return isinstance(offset, dict) and bool(offset) and all(map(_is_partition, offset.items()))


class RateMicroBatch(OpaqueSource):
    """The number of rows so far, and the timestamp of the next batch."""

    kind = "rate-micro-batch"

    def owns(self, offset: object, log: SourceEntries) -> bool:
        return _rows_until(offset) is not None

    def rows(self, span: SourceRange) -> int | None:
        start = 0 if span.start is None else _rows_until(decoded(span.start))
        end = _rows_until(decoded(span.end))
        return None if start is None or end is None else max(end - start, 0)


def _is_partition(item: tuple[str, object]) -> bool:
    name, position = item
    return is_index(name) and isinstance(position, dict) and position.keys() == {"value", "runTimeMs"}


def _rows_until(offset: object) -> int | None:
    if not isinstance(offset, dict) or offset.keys() != {"offset", "timestamp"}:
        return None
    rows = offset["offset"]
    return rows if is_long(rows) and is_long(offset["timestamp"]) else None
