"""Kinds of sources behind a common contract: the kind of an offset, and the data between two offsets.

Forbidden here: IO, except through arguments and in ``live`` modules, which are imported to ask a broker or store;
guessing the meaning of an offset that belongs to no kind.
"""

from collections.abc import Iterator

from slackwater.core.registry import Registry
from slackwater.sources.common.contract import SourceEntries, decoded
from slackwater.sources.common.source import Source


class Unknown(Source):
    kind = "unknown"

    def owns(self, offset: object, log: SourceEntries) -> bool:
        return True


SOURCES: Registry[Source] = Registry(
    "slackwater.sources",
    {
        "delta": "slackwater.sources.delta:SOURCE",
        "files": "slackwater.sources.files:SOURCE",
        "iceberg": "slackwater.sources.iceberg:SOURCE",
        "kafka": "slackwater.sources.kafka:SOURCE",
        "kinesis": "slackwater.sources.opaque:KINESIS",
        "number": "slackwater.sources.opaque:NUMBER",
        "rate": "slackwater.sources.opaque:RATE",
        "rate-continuous": "slackwater.sources.opaque:RATE_CONTINUOUS",
        "rate-micro-batch": "slackwater.sources.opaque:RATE_MICRO_BATCH",
    },
)
UNKNOWN = Unknown()


def kinds() -> tuple[Source, ...]:
    return (*SOURCES.all(), UNKNOWN)


def kind_of(offset: str | None, log: SourceEntries) -> Source:
    """The kind of an offset, otherwise the unknown kind; never raises."""
    value = decoded(offset)
    return next(kind for kind in kinds() if kind.owns(value, log))


def kind_named(name: str) -> Source:
    return {kind.kind: kind for kind in kinds()}[name]


def kind_described(description: str) -> Source:
    """The kind for Spark's description in a plan or progress event; otherwise the unknown kind."""
    return next((kind for kind in kinds() if kind.is_named(description)), UNKNOWN)


def kinds_of_format(name: str) -> Iterator[Source]:
    """The kinds that a checkpoint may show for this format; none if unknown."""
    return (kind for kind in kinds() if name.lower() in kind.formats)


def kind_of_entry(data: bytes) -> Source:
    return next((kind for kind in kinds() if kind.entry_parser(data) is not None), UNKNOWN)
