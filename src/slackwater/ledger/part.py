"""What the parts of the ledger share: the database, the clock, and rows to and from the frozen values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Connection, Table, select

from slackwater.ledger import tables
from slackwater.ledger.lineage import Contribution, contributions
from slackwater.model.records import GenerationRecord

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from slackwater.ledger.database import Database


class LedgerPart:
    """One group of tables of a ledger; ``Ledger`` is all of them."""

    def __init__(self, database: Database, now_ms: Callable[[], int]) -> None:
        self._database = database
        self._now_ms = now_ms

    @staticmethod
    def _lineage(connection: Connection, stream: str, newest: int | None) -> tuple[Contribution, ...]:
        """The lineage of a generation, or of the one in use."""
        if newest is None:
            newest = connection.scalar(
                select(tables.streams.c.current_generation).where(tables.streams.c.full_name == stream)
            )
        rows = connection.execute(select(tables.generations).where(tables.generations.c.stream == stream)).mappings()
        return contributions([GenerationRecord(**row) for row in rows], newest) if newest is not None else ()


def as_row(record: DataclassInstance) -> dict[str, Any]:
    """A frozen value as a row with columns of the same names."""
    return {field.name: getattr(record, field.name) for field in fields(record)}


def between(column: ColumnElement[int], first: int | None, last: int | None) -> list[ColumnElement[bool]]:
    """Conditions for a range with both ends included; ``None``: open."""
    lower = [column >= first] if first is not None else []
    return lower + ([column <= last] if last is not None else [])


def inherited(
    table: Table, position: ColumnElement[int], lineage: tuple[Contribution, ...], log: str
) -> list[ColumnElement[bool]]:
    """For each share of a lineage, the condition that a row of the table belongs to it."""
    return [(table.c.generation == share.generation) & _until(position, share.last_entry(log)) for share in lineage]


def _until(position: ColumnElement[int], last: int | None) -> ColumnElement[bool]:
    return position.is_not(None) if last is None else position <= last
