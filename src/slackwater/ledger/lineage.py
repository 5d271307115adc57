"""Selects the lines and batches that count: the generation in use, then its inheritance.

An operation that builds a generation at batch w discards later batches of the old generation. Their lines never count
again: Spark reuses their ids for other data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from slackwater.core.records import GenerationRecord

SOURCES = "sources/"
SIZES = "sizes/"
"""The sizes in bytes of files in the entries of a source's own log; Spark does not record them."""
METADATA = "metadata"
SINK = "sink"
CAUGHT_UP = "caught-up"
"""By batch, its ``offsets`` entry: the query was stopped after the batch, and its sources had no more data."""
INPUT_WATERMARKS = "input-watermarks"
"""By batch, the newest watermark of each input of a query with several inputs, recorded just before the commit."""
AVAILABLE_NOW = "available-now"
"""By run, the positions at which it would have ended by itself."""
SOURCE_IDS = "source-ids"
"""By the first batch that a run may plan, the ids of each source's data (``LiveSource.ids``), by its place."""


@dataclass(frozen=True, slots=True)
class Contribution:
    """A generation's share. ``last_batch`` ``None``: everything, as the generation is in use."""

    generation: int
    last_batch: int | None = None
    source_cut: Mapping[str, int] = field(default_factory=dict)

    def last_entry(self, log: str) -> int | None:
        """The last entry of a log that counts; ``None``: all count.

        ``sources/<source>`` is numbered by its own offsets, other logs by batch; ``metadata`` has one entry.
        """
        if log.startswith((SOURCES, SIZES)):
            return self.source_cut.get(log.partition("/")[2])
        return None if log == METADATA else self.last_batch


def contributions(generations: Iterable[GenerationRecord], newest: int) -> tuple[Contribution, ...]:
    """The contributions, youngest first, each cut at the lowest base among the younger generations."""
    known = {generation.number: generation for generation in generations}
    if newest not in known:
        return ()
    lineage = [Contribution(newest)]
    child = known[newest]
    while (parent := _parent(child, known)) is not None and child.based_at is not None:
        younger = lineage[-1]
        last_batch = child.based_at if younger.last_batch is None else min(child.based_at, younger.last_batch)
        lineage.append(Contribution(parent.number, last_batch, _lowest(younger.source_cut, child.source_cut)))
        child = parent
    return tuple(lineage)


def _parent(child: GenerationRecord, known: Mapping[int, GenerationRecord]) -> GenerationRecord | None:
    number = child.number - 1 if child.parent is None else child.parent
    # A parent is always older; anything else would be a cycle.
    return known.get(number) if number < child.number else None


def _lowest(left: Mapping[str, int], right: Mapping[str, int]) -> Mapping[str, int]:
    both = {source: min(left[source], right[source]) for source in left.keys() & right.keys()}
    return {**left, **right, **both}
