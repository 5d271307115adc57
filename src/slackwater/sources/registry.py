"""The one registry of source kinds: found by offset (and log), or by the name of the kind."""

from __future__ import annotations

from slackwater.sources.contract import Source, SourceEntries
from slackwater.sources.delta import Delta
from slackwater.sources.files import Files
from slackwater.sources.iceberg import Iceberg
from slackwater.sources.kafka import Kafka
from slackwater.sources.kinesis import Kinesis
from slackwater.sources.number import Number
from slackwater.sources.rate import Rate, RateContinuous, RateMicroBatch
from slackwater.sources.shapes import decoded
from slackwater.sources.unknown import Unknown

UNKNOWN = Unknown()
_kinds: list[Source] = [
    Files(),
    Kafka(),
    Rate(),
    RateContinuous(),
    RateMicroBatch(),
    Delta(),
    Iceberg(),
    Kinesis(),
    Number(),
]


def kinds() -> tuple[Source, ...]:
    """Every registered kind; the unknown kind, which owns what no other one does, is the last."""
    return (*_kinds, UNKNOWN)


def kind_of(offset: str | None, log: SourceEntries) -> Source:
    """The kind of a source with this offset and log. Never raises: what no kind owns is of the unknown kind."""
    value = decoded(offset)
    return next(kind for kind in kinds() if kind.owns(value, log))


def kind_named(name: str) -> Source:
    """The kind with this name. Raises KeyError where none is registered."""
    return {kind.kind: kind for kind in kinds()}[name]


def register(source: Source) -> None:
    """Add a kind; it is tried before those registered earlier, and replaces one of the same name."""
    unregister(source.kind)
    _kinds.insert(0, source)


def unregister(name: str) -> None:
    """Remove a kind; sources that it owned are of another kind, or unknown."""
    _kinds[:] = [kind for kind in _kinds if kind.kind != name]
