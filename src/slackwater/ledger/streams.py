"""The ledger's streams and their generations."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import RowMapping, delete, func, literal, select, update

from slackwater.errors import NotFound, UsageError
from slackwater.ledger.columns import unreadable
from slackwater.ledger.database import upsert
from slackwater.ledger.part import LedgerPart, as_row
from slackwater.ledger.tables import batches, generations, leases, log_lines, operations, replaced_lines, runs, streams
from slackwater.model.records import GenerationRecord, StreamRecord

OPERATORS, STATE_STORES = "operators", "state_stores"
_LISTS = {OPERATORS: str, "watermark_delays_ms": int, "windows_ms": int, "sources": str}
"""Fields of a recorded ``QueryProfile`` and the types of their elements."""


class StreamsPart(LedgerPart):
    """Streams and generations."""

    def register_stream(self, record: StreamRecord) -> None:
        """Add a stream, or update it with what a run reports.

        The generation in use of a known stream is kept: only ``set_current_generation`` changes it.
        """
        row = as_row(record) | {"full_name": record.full_name, "sink": dict(record.sink)}
        with self._database.write() as connection:
            known = (
                connection.execute(select(streams).where(streams.c.full_name == record.full_name)).mappings().first()
            )
            kept = {"current_generation": known["current_generation"], "id": record.id or known["id"]} if known else {}
            upsert(connection, streams, [row | kept])

    def streams(self) -> list[StreamRecord]:
        """All streams of the home, by full name."""
        with self._database.read() as connection:
            rows = connection.execute(select(streams).order_by(streams.c.full_name)).mappings().all()
        return [_stream(row) for row in rows]

    def find_stream(self, name: str) -> StreamRecord:
        """The stream called ``stream`` or ``pipeline/stream``.

        Raises ``NotFound`` (``stream-unknown``) or ``UsageError`` (``stream-ambiguous``: pipelines share the name).
        """
        known = self.streams()
        matches = [stream for stream in known if name in {stream.name, stream.full_name}]
        if len(matches) == 1:
            return matches[0]
        names = [stream.full_name for stream in matches or known]
        raise _ambiguous(name, names) if matches else _unknown(name, names)

    def set_current_generation(self, stream: str, number: int) -> None:
        """Make a generation the one in use. ``stream`` is the full name; the generation must have been added."""
        self.generation(stream, number)
        with self._database.write() as connection:
            connection.execute(update(streams).where(streams.c.full_name == stream).values(current_generation=number))

    def add_generation(self, record: GenerationRecord) -> None:
        """Add a generation, or replace its record."""
        row = as_row(record) | {"source_cut": dict(record.source_cut), "layout": _plain(record.layout)}
        with self._database.write() as connection:
            upsert(connection, generations, [row])

    def switch_generations(self, stream: str, current: int, records: Sequence[GenerationRecord]) -> None:
        """Replace the records of some generations and make ``current`` the one in use, in one transaction."""
        rows = [as_row(one) | {"source_cut": dict(one.source_cut), "layout": _plain(one.layout)} for one in records]
        with self._database.write() as connection:
            upsert(connection, generations, rows)
            connection.execute(update(streams).where(streams.c.full_name == stream).values(current_generation=current))

    def update_generation(
        self, stream: str, number: int, *, query_id: str | None = None, layout: Mapping[str, object] | None = None
    ) -> None:
        """Fill in what is only known once the query has started; ``None`` leaves a value as it is."""
        values: dict[str, Any] = {"query_id": query_id, "layout": _plain(layout)}
        changed = {name: value for name, value in values.items() if value is not None}
        self.generation(stream, number)
        if changed:
            with self._database.write() as connection:
                this_one = (generations.c.stream == stream) & (generations.c.number == number)
                connection.execute(update(generations).where(this_one).values(changed))

    def remove_generation(self, stream: str, number: int) -> None:
        """Remove the record of a generation that an operation built and removed, with its runs and their batches.

        The one in use cannot be removed.
        """
        here = (generations.c.stream == stream) & (generations.c.number == number)
        with self._database.write() as connection:
            for table in (log_lines, replaced_lines, batches, runs):
                connection.execute(delete(table).where((table.c.stream == stream) & (table.c.generation == number)))
            connection.execute(delete(generations).where(here))

    def relocate(self, old: str, new: str) -> None:
        """Replace the folder ``old`` by ``new`` at the start of every recorded path of checkpoints and operations."""
        with self._database.write() as connection:
            for table, column in ((generations, generations.c.location), (operations, operations.c.summary)):
                below = column.startswith(old.rstrip("/") + "/", autoescape=True)
                moved = literal(new.rstrip("/")) + func.substr(column, len(old.rstrip("/")) + 1)
                connection.execute(update(table).where(below).values({column.name: moved}))

    def replace_ids(self, ids: Mapping[str, str]) -> None:
        """Give streams other ids, by full name, and delete all leases: what a copy of a home needs."""
        with self._database.write() as connection:
            for stream, identifier in ids.items():
                connection.execute(update(streams).where(streams.c.full_name == stream).values(id=identifier))
            connection.execute(delete(leases))

    def generations(self, stream: str) -> list[GenerationRecord]:
        """All generations of a stream, oldest first."""
        query = select(generations).where(generations.c.stream == stream).order_by(generations.c.number)
        with self._database.read() as connection:
            return [_generation(row) for row in connection.execute(query).mappings()]

    def generation(self, stream: str, number: int) -> GenerationRecord:
        """One generation. Raises ``NotFound`` (``generation-unknown``)."""
        known = self.generations(stream)
        for record in known:
            if record.number == number:
                return record
        raise NotFound(
            "generation-unknown",
            f"{stream} has no generation {number}",
            found=", ".join(str(record.number) for record in known) or "no generations",
        )


def _plain(mapping: Mapping[str, object] | None) -> dict[str, object] | None:
    return None if mapping is None else dict(mapping)


def _stream(row: RowMapping) -> StreamRecord:
    sink = row["sink"]
    if not all(isinstance(value, str) for value in sink.values()) or (
        sink.get("kind") == "files" and "path" not in sink
    ):
        raise unreadable("the identity of a sink", sink)
    return StreamRecord(**{name: value for name, value in row.items() if name != "full_name"})


def _generation(row: RowMapping) -> GenerationRecord:
    record = GenerationRecord(**row)
    if not all(isinstance(entry, int) for entry in record.source_cut.values()):
        raise unreadable("entries of sources as integers", record.source_cut)
    if record.layout is not None and not _is_layout(record.layout):
        raise unreadable("the layout of a query's state", record.layout)
    return record


def _is_layout(layout: Mapping[str, Any]) -> bool:
    """Whether this is the profile of a query, what its first batches made of it, or both."""
    if OPERATORS not in layout:
        return STATE_STORES in layout
    retention_ms = layout.get("retention_ms")
    return all(_is_list(layout.get(name), kind) for name, kind in _LISTS.items()) and (
        retention_ms is None or isinstance(retention_ms, int)
    )


def _is_list(value: object, kind: type) -> bool:
    return isinstance(value, list) and all(isinstance(one, kind) for one in value)


def _ambiguous(name: str, names: Sequence[str]) -> UsageError:
    return UsageError(
        "stream-ambiguous",
        f"More than one pipeline has a stream {name}",
        found=", ".join(names),
        hint=f"name one of them in full, for example {names[0]}",
    )


def _unknown(name: str, names: Sequence[str]) -> NotFound:
    near = difflib.get_close_matches(name, [*names, *(known.partition("/")[2] for known in names)], n=1)
    listed = f"known streams: {', '.join(names)}" if names else "no stream has run in this home yet"
    return NotFound(
        "stream-unknown",
        f"The ledger has no stream {name}",
        hint=f"did you mean {near[0]}? {listed}" if near else listed,
    )
