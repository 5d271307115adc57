"""Kinds of which little is known beyond the shape of their offsets. Facts: docs/format.md, section 6."""

from slackwater.sources.common.contract import SourceEntries, SourceRange, decoded, is_index, is_long, log_shape
from slackwater.sources.common.source import Source


class Number(Source):
    """A bare number as offset and no log: socket and memory. It counts different things: nothing is derived from it."""

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


class Rate(Source):
    """``rate`` in micro-batches: seconds since its creation, the time of which ``sources/<source>/0`` holds."""

    kind = "rate"
    formats = frozenset({"rate"})
    harmless_options = frozenset({"numpartitions", "ramuptime", "rampuptime", "rowspersecond"})

    def owns(self, offset: object, log: SourceEntries) -> bool:
        return (offset is None or is_long(offset)) and log_shape(log) == "rate"


class RateMicroBatch(Source):
    """``rate-micro-batch``: the number of rows so far, and the timestamp of the next batch."""

    kind = "rate-micro-batch"
    formats = frozenset({"rate-micro-batch"})
    harmless_options = frozenset({"advancemillisperbatch", "numpartitions", "rowsperbatch", "starttimestamp"})

    def owns(self, offset: object, log: SourceEntries) -> bool:
        return _rows_until(offset) is not None

    def rows(self, span: SourceRange) -> int | None:
        start = 0 if span.start is None else _rows_until(decoded(span.start))
        end = _rows_until(decoded(span.end))
        return None if start is None or end is None else max(end - start, 0)


def _rows_until(offset: object) -> int | None:
    if not isinstance(offset, dict) or offset.keys() != {"offset", "timestamp"}:
        return None
    rows = offset["offset"]
    return rows if is_long(rows) and is_long(offset["timestamp"]) else None


class RateContinuous(Source):
    kind = "rate-continuous"
    formats = frozenset({"rate"})

    def owns(self, offset: object, log: SourceEntries) -> bool:
        return isinstance(offset, dict) and bool(offset) and all(map(_is_partition, offset.items()))


def _is_partition(item: tuple[str, object]) -> bool:
    name, position = item
    return is_index(name) and isinstance(position, dict) and position.keys() == {"value", "runTimeMs"}


class Kinesis(Source):
    """Kinesis streams, as the open-source connector and Databricks' own write their offsets.

    An iterator or a range of sequence numbers by shard; sequence numbers do not count rows.
    """

    kind = "kinesis"

    def owns(self, offset: object, log: SourceEntries) -> bool:
        if not isinstance(offset, dict):
            return False
        if offset.keys() <= {"streamName", "shards"}:
            return isinstance(offset.get("streamName"), str)
        stream = offset.get("metadata")
        return isinstance(stream, dict) and isinstance(stream.get("streamName"), str)


KINESIS, NUMBER, RATE = Kinesis(), Number(), Rate()
RATE_CONTINUOUS, RATE_MICRO_BATCH = RateContinuous(), RateMicroBatch()
