"""The ledger's batches, from their progress events, and the verbatim lines of the logs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, delete, or_, select

from slackwater.ledger.columns import unreadable
from slackwater.ledger.database import upsert
from slackwater.ledger.lineage import Contribution
from slackwater.ledger.part import LedgerPart, as_row, between, inherited
from slackwater.ledger.tables import batches, log_lines, replaced_lines
from slackwater.model.records import BatchRecord, BatchSource, LogLine

_OFFSETS = "offsets"
_ROWS_AT_ONCE = 10_000
_FIELDS_OF_SOURCE = {field.name for field in fields(BatchSource)}


class BatchesPart(LedgerPart):
    """Batches and log lines."""

    def record_batch(self, record: BatchRecord) -> None:
        """Record a finished batch; the same batch of the same generation again replaces it."""
        nested = {"sources": [as_row(source) for source in record.sources], "durations_ms": dict(record.durations_ms)}
        with self._database.write_unflushed() as connection:
            upsert(connection, batches, [as_row(record) | nested])

    def batches(
        self, stream: str, first: int | None = None, last: int | None = None, *, generation: int | None = None
    ) -> list[BatchRecord]:
        """The stream's batches in order, both ends included, each from the youngest generation in which it counts.

        ``generation`` asks for the past of that generation instead of the one in use.
        """
        with self._database.read() as connection:
            lineage = self._lineage(connection, stream, generation)
            query = (
                select(batches)
                .where(batches.c.stream == stream, *between(batches.c.batch_id, first, last))
                .where(or_(False, *inherited(batches, batches.c.batch_id, lineage, _OFFSETS)))
                .order_by(batches.c.batch_id, batches.c.generation)
            )
            rows = connection.execute(query).mappings()
            # Of two rows of one batch the younger generation's comes later, and stays.
            newest = {int(row["batch_id"]): _batch(row) for row in rows}
        return list(newest.values())

    def batch(self, stream: str, batch_id: int) -> BatchRecord | None:
        """One batch, ``None`` where the ledger has no record of it."""
        return next(iter(self.batches(stream, batch_id, batch_id)), None)

    def record_lines(self, lines: Iterable[LogLine], replaced: Iterable[LogLine] = ()) -> None:
        """Record log lines, all of them or none; an entry that is recorded already is replaced.

        ``replaced`` are the lines that are replaced; they are kept aside.
        """
        rows = [as_row(line) | {"text": _to_bytes(line.text)} for line in lines]
        seen_ms = self._now_ms()
        kept = [as_row(line) | {"text": _to_bytes(line.text), "seen_ms": seen_ms} for line in replaced]
        with self._database.write_unflushed() as connection:
            for start in range(0, len(rows), _ROWS_AT_ONCE):
                upsert(connection, log_lines, rows[start : start + _ROWS_AT_ONCE])
            upsert(connection, replaced_lines, kept)

    def remove_lines(self, stream: str, generation: int, log: str, *, after: int) -> None:
        """Remove the entries above ``after`` that this generation itself has: an operation has taken them back."""
        with self._database.write() as connection:
            connection.execute(delete(log_lines).where(*_own(stream, generation, log), log_lines.c.entry > after))

    def replaced_lines(self, stream: str, log: str) -> list[LogLine]:
        """The lines of a log that were replaced, oldest first."""
        query = (
            select(replaced_lines)
            .where(replaced_lines.c.stream == stream, replaced_lines.c.log == log)
            .order_by(replaced_lines.c.seen_ms, replaced_lines.c.entry)
        )
        with self._database.read() as connection:
            rows = connection.execute(query).mappings().all()
        return [_line({key: value for key, value in row.items() if key != "seen_ms"}) for row in rows]

    def recorded_entries(self, stream: str, generation: int, log: str) -> set[int]:
        """The entries of a log that this generation itself has; nothing inherited."""
        query = select(log_lines.c.entry).where(*_own(stream, generation, log))
        with self._database.read() as connection:
            return set(connection.scalars(query))

    def entries(self, stream: str, log: str, *, generation: int | None = None) -> set[int]:
        """The entries of a log that ``lines`` would give, without their content."""
        with self._database.read() as connection:
            lineage = self._lineage(connection, stream, generation)
            query = select(log_lines.c.entry).where(*_counting(stream, log, lineage))
            return set(connection.scalars(query))

    def own_lines(self, stream: str, generation: int, log: str, entries: Iterable[int]) -> dict[int, str]:
        """The content of some entries that this generation itself has."""
        query = select(log_lines.c.entry, log_lines.c.text).where(
            *_own(stream, generation, log), log_lines.c.entry.in_(list(entries))
        )
        with self._database.read() as connection:
            return {int(entry): _to_text(text) for entry, text in connection.execute(query)}

    def lines(
        self,
        stream: str,
        log: str,
        first: int | None = None,
        last: int | None = None,
        *,
        generation: int | None = None,
    ) -> dict[int, LogLine]:
        """A log's entries in order, both ends included, each from the youngest generation in which it counts.

        A generation's own lines win. Older entries come from its ancestors, up to the batch (for ``sources/<source>``:
        up to the entry) at which each younger generation was based. ``generation`` asks for the past of that generation
        instead of the one in use.
        """
        with self._database.read() as connection:
            lineage = self._lineage(connection, stream, generation)
            query = (
                select(log_lines)
                .where(*_counting(stream, log, lineage), *between(log_lines.c.entry, first, last))
                .order_by(log_lines.c.entry, log_lines.c.generation)
            )
            return {int(row["entry"]): _line(row) for row in connection.execute(query).mappings()}

    def logs(self, stream: str) -> list[str]:
        """The names of the logs of which any generation of the stream has a line."""
        query = select(log_lines.c.log).where(log_lines.c.stream == stream).distinct().order_by(log_lines.c.log)
        with self._database.read() as connection:
            return list(connection.scalars(query))


def _counting(stream: str, log: str, lineage: tuple[Contribution, ...]) -> list[ColumnElement[bool]]:
    by_generation = inherited(log_lines, log_lines.c.entry, lineage, log)
    return [log_lines.c.stream == stream, log_lines.c.log == log, or_(False, *by_generation)]


def _own(stream: str, generation: int, log: str) -> list[ColumnElement[bool]]:
    return [log_lines.c.stream == stream, log_lines.c.generation == generation, log_lines.c.log == log]


def _to_bytes(text: str) -> bytes:
    # The counterpart of how files are read: bytes that are no UTF-8 survive the way there and back.
    return text.encode("utf-8", "surrogateescape")


def _to_text(stored: bytes) -> str:
    return stored.decode("utf-8", "surrogateescape")


def _line(row: Mapping[Any, Any]) -> LogLine:
    return LogLine(**(dict(row) | {"text": _to_text(row["text"])}))


def _batch(row: RowMapping) -> BatchRecord:
    durations = row["durations_ms"]
    if not all(isinstance(duration, int) for duration in durations.values()):
        raise unreadable("durations as integers", durations)
    return BatchRecord(**(dict(row) | {"sources": tuple(map(_source, row["sources"]))}))


def _source(value: object) -> BatchSource:
    """One source's part in a batch, as ``record_batch`` stored it. Raises ``DataError`` (``ledger-unreadable``)."""
    if isinstance(value, dict) and value.keys() == _FIELDS_OF_SOURCE and _has_its_types(source := BatchSource(**value)):
        return source
    raise unreadable("a source of a batch", value)


def _has_its_types(source: BatchSource) -> bool:
    offsets: tuple[object, ...] = (source.start, source.end, source.latest)
    description: object = source.description
    rows: object = source.input_rows
    return (
        isinstance(description, str)
        and isinstance(rows, int)
        and all(offset is None or isinstance(offset, str) for offset in offsets)
    )
