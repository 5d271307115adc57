"""Shared by the ledger's parts: database, clock, and lineages."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from slackwater.core.records import GenerationRecord
from slackwater.ledger import tables
from slackwater.ledger.database import Connection
from slackwater.ledger.lineage import Contribution, contributions

if TYPE_CHECKING:
    from slackwater.ledger.database import Database


class LedgerPart:
    def __init__(self, database: Database, now_ms: Callable[[], int]) -> None:
        self._database = database
        self._now_ms = now_ms

    @staticmethod
    def _lineage(connection: Connection, stream: str, newest: int | None) -> tuple[Contribution, ...]:
        if newest is None:
            in_use = connection.column(
                tables.streams, "current_generation", "WHERE full_name = :stream", {"stream": stream}
            )
            newest = next(iter(in_use), None)
        rows = connection.rows(tables.generations, "WHERE stream = :stream", {"stream": stream})
        return contributions([GenerationRecord(**row) for row in rows], newest) if newest is not None else ()


def between(column: str, first: int | None, last: int | None) -> tuple[str, dict[str, int]]:
    """The condition for a range, both ends included; ``None``: open.

    An open end is no condition: SQLite orders text, which a damaged row may have, after all integers.
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
