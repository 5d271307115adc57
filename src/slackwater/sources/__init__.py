"""Kinds of sources behind one contract: which offsets belong to a kind, and what a range between two offsets means.

A module or folder is a kind, with the kind as ``SOURCE``; ``common`` has the contract. What may not happen in it: IO,
other than through what is passed in, and in modules named ``live``, which are imported when a broker or a store is
asked; a guess at the meaning of an offset that belongs to no kind.
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.registry import Registry
from slackwater.sources.common.contract import SourceEntries
from slackwater.sources.common.shapes import decoded
from slackwater.sources.common.source import Source


class Unknown(Source):
    """The kind that is tried last."""

    kind = "unknown"

    def owns(self, offset: object, log: SourceEntries) -> bool:
        return True


SOURCES: Registry[Source] = Registry(package=__name__, attribute="SOURCE", group="slackwater.sources")
UNKNOWN = Unknown()


def kinds() -> tuple[Source, ...]:
    """Every kind; the unknown kind, which owns what no other one does, is the last."""
    return (*SOURCES.all(), UNKNOWN)


def kind_of(offset: str | None, log: SourceEntries) -> Source:
    """The kind of a source with this offset and log. Never raises: what no kind owns is of the unknown kind."""
    value = decoded(offset)
    return next(kind for kind in kinds() if kind.owns(value, log))


def kind_named(name: str) -> Source:
    """The kind with this name. Raises KeyError where there is none."""
    return {kind.kind: kind for kind in kinds()}[name]


def kind_described(description: str) -> Source:
    """The kind that Spark names so, in the plan of a query or in progress events; else the unknown kind."""
    return next((kind for kind in kinds() if kind.is_named(description)), UNKNOWN)


def kinds_of_format(name: str) -> Iterator[Source]:
    """The kinds that a checkpoint may show of a source of this format; none where that is not known."""
    return (kind for kind in kinds() if name.lower() in kind.formats)


def kind_of_entry(data: bytes) -> Source:
    """The kind that parses an entry of ``sources/<source>/``; the unknown kind if none does."""
    return next((kind for kind in kinds() if kind.entry_parser(data) is not None), UNKNOWN)
