"""Selects the lines and batches that count: the generation in use, then its inheritance.

An operation that builds a generation at batch w discards later batches of the old generation. Their lines never count
again: Spark reuses their ids for other data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from slackwater.core.checkpoint import NONE_YET
from slackwater.core.records import GenerationRecord
from slackwater.ledger import tables
from slackwater.ledger.database import Connection

if TYPE_CHECKING:
    from slackwater.ledger.database import Database


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
    """A generation's share. ``last_batch`` ``None``: everything, as the generation is in use. It ran the batches after
    ``base`` (-1: all) itself.
    """

    generation: int
    base: int
    last_batch: int | None = None
    source_cut: Mapping[str, int] = field(default_factory=dict)

    def last_entry(self, log: str) -> int | None:
        """The last entry of a log that counts; ``None``: all count. ``sources/<source>`` is numbered by its own
        offsets, other logs by batch; ``metadata`` has one entry.
        """
        if log.startswith((SOURCES, SIZES)):
            return self.source_cut.get(log.partition("/")[2])
        return None if log == METADATA else self.last_batch


def contributions(generations: Iterable[GenerationRecord], newest: int) -> tuple[Contribution, ...]:
    """The contributions, youngest first, each cut at the lowest base among the younger generations."""
    known = {generation.number: generation for generation in generations}
    if newest not in known:
        return ()
    lineage = [Contribution(newest, _base(known[newest]))]
    child = known[newest]
    while child.based_at is not None:
        number = child.number - 1 if child.parent is None else child.parent
        # A parent is always older; anything else would be a cycle.
        parent = known.get(number) if number < child.number else None
        if parent is None:
            break
        younger = lineage[-1]
        last_batch = child.based_at if younger.last_batch is None else min(child.based_at, younger.last_batch)
        left, right = younger.source_cut, child.source_cut
        both = {source: min(left[source], right[source]) for source in left.keys() & right.keys()}
        source_cut = {**left, **right, **both}
        lineage.append(Contribution(parent.number, _base(parent), last_batch, source_cut))
        child = parent
    return tuple(lineage)


def _base(generation: GenerationRecord) -> int:
    return NONE_YET if generation.based_at is None else generation.based_at


class LedgerPart:
    def __init__(self, database: Database, now_ms: Callable[[], int]) -> None:
        self._database = database
        self.now_ms = now_ms
        """Epoch milliseconds, for runs, operations and leases."""

    @staticmethod
    def _counting(
        connection: Connection, stream: str, position: str, log: str, newest: int | None = None
    ) -> tuple[str, dict[str, Any]]:
        """The condition for lines that count in generation ``newest``, by default the one in use, with its values.
        ``position`` is the column that numbers the log's entries.
        """
        values = {"stream": stream, "log": log}
        if newest is None:
            in_use = connection.column(tables.streams, "current_generation", "WHERE full_name = :stream", values)
            newest = next(iter(in_use), -1)
        rows = connection.rows(tables.generations, "WHERE stream = :stream", values)
        lineage = contributions([GenerationRecord(**row) for row in rows], newest)
        counting, inherited_values = inherited(position, lineage, log)
        return f"stream = :stream AND {counting}", values | inherited_values


def between(column: str, first: int | None, last: int | None) -> tuple[str, dict[str, int]]:
    """The condition for a range, both ends included; ``None``: open. An open end is no condition: SQLite orders text,
    which a damaged row may have, after all integers.
    """
    given = {name: value for name, value in (("first", first), ("last", last)) if value is not None}
    operators = {"first": ">=", "last": "<="}
    return " AND ".join(["1 = 1", *(f"{column} {operators[name]} :{name}" for name in given)]), given


def inherited(position: str, lineage: tuple[Contribution, ...], log: str) -> tuple[str, dict[str, int]]:
    """The condition for inherited lines; ``position`` is the column that numbers the log's entries."""
    conditions: list[str] = []
    values: dict[str, int] = {}
    for index, share in enumerate(lineage):
        last = share.last_entry(log)
        condition = f"generation = :generation_{index}"
        values[f"generation_{index}"] = share.generation
        if last is not None:
            condition += f" AND {position} <= :last_{index}"
            values[f"last_{index}"] = last
        conditions.append(condition)
    # With no more than is needed: with a constant SQLite does not use the index, and sorts.
    return f"({' OR '.join(conditions) or '1 = 0'})", values
