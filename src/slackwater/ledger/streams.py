"""Streams and their generations."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from slackwater.core.commands import command
from slackwater.core.errors import NotFound, Refused, UsageError
from slackwater.core.escaping import is_path, is_unicode
from slackwater.core.records import GenerationRecord, StreamRecord
from slackwater.ledger.database import Connection, Row
from slackwater.ledger.lineage import LedgerPart
from slackwater.ledger.tables import (
    batches,
    generations,
    leases,
    log_lines,
    operation_files,
    operations,
    replaced_lines,
    runs,
    sink_marks,
    streams,
    unreadable,
)
from slackwater.storage.open import resolved

OPERATORS, STATE_STORES = "operators", "state_stores"
_LISTS = {OPERATORS: str, "watermark_delays_ms": int, "windows_ms": int, "sources": str}
"""Fields of a recorded ``QueryProfile`` and the types of their elements."""
WINDOW_STARTS = 2
"""The number of values in ``window_starts_ms``."""

_THIS = "full_name = :stream"
# Whether a stream has its generation in use; a registration or restoration that was killed leaves it without.
_IS_WHOLE = (
    "EXISTS (SELECT 1 FROM generations WHERE generations.stream = streams.full_name"
    " AND generations.number = streams.current_generation)"
)
_THIS_WHOLE = f"WHERE {_IS_WHOLE} AND {_THIS}"


class StreamsPart(LedgerPart):
    def register_stream(self, record: StreamRecord, first: GenerationRecord | None = None) -> None:
        """Add a stream with its first generation, or update it with a run's report.

        Only ``set_current_generation`` changes a known stream's generation. A stream without its generation in use
        counts as absent. Raises Refused (``query-checkpoint``) if a watched stream's first checkpoint is taken.
        """
        row = record._asdict() | {"full_name": record.full_name}
        with self._database.write() as connection:
            if first is not None and record.is_watched:
                self._require_free(connection, first)
            known = connection.first(streams, _THIS_WHOLE, {"stream": record.full_name})
            kept = {"current_generation": known["current_generation"], "id": record.id or known["id"]} if known else {}
            connection.upsert(streams, [row | kept])
            connection.upsert(generations, [first._asdict()] if first is not None else [])

    def _require_free(self, connection: Connection, first: GenerationRecord) -> None:
        if not self._database.is_sqlite:
            # Until the end of the transaction; SQLite has one writer.
            connection.execute("LOCK TABLE streams IN SHARE ROW EXCLUSIVE MODE")
        in_use = "JOIN streams ON full_name = stream AND current_generation = number WHERE stream <> :stream"
        wanted = resolved(first.location)
        for row in connection.rows(generations, in_use, {"stream": first.stream}, only=("stream", "location")):
            if resolved(row["location"]) == wanted:
                raise Refused(
                    "query-checkpoint",
                    f"The checkpoint belongs to stream {row['stream']}, which another process has recorded meanwhile",
                    where=first.location,
                    expected=row["stream"],
                    found=first.stream,
                    hint=f"use that name, or forget the stream first: {command('release', row['stream'])}",
                )

    def streams(self) -> list[StreamRecord]:
        with self._database.read() as connection:
            rows = connection.rows(streams, f"WHERE {_IS_WHOLE} ORDER BY full_name")
        return [_stream(row) for row in rows]

    def stream_names(self) -> list[str]:
        """The names, including streams with unreadable columns."""
        with self._database.read() as connection:
            return connection.column(streams, "full_name", f"WHERE {_IS_WHOLE} ORDER BY full_name")

    def stream(self, full_name: str) -> StreamRecord:
        with self._database.read() as connection:
            row = connection.first(streams, _THIS_WHOLE, {"stream": full_name})
        if row is None:
            raise _unknown(full_name, self.stream_names())
        return _stream(row)

    def without_generation(self) -> list[tuple[str, int]]:
        """Streams whose generation in use is missing, with its number."""
        has_any = "EXISTS (SELECT 1 FROM generations WHERE generations.stream = streams.full_name)"
        columns = ("full_name", "current_generation")
        with self._database.read() as connection:
            rows = connection.rows(streams, f"WHERE {has_any} AND NOT {_IS_WHOLE}", only=columns)
        return [(row["full_name"], row["current_generation"]) for row in rows]

    def find_stream(self, name: str) -> StreamRecord:
        """Find ``stream`` or ``pipeline/stream``. Raises ``NotFound`` (``stream-unknown``) or ``UsageError``
        (``stream-ambiguous``: pipelines share the name).
        """
        known = self.stream_names()
        # A full name first: a watched query may have been recorded under a name that is another stream's full name.
        matches = [name] if name in known else [one for one in known if one.partition("/")[2] == name]
        if len(matches) == 1:
            return self.stream(matches[0])
        if not matches:
            raise _unknown(name, known)
        raise UsageError(
            "stream-ambiguous",
            f"More than one pipeline has a stream {name}",
            found=", ".join(matches),
            hint=f"name one of them in full, for example {matches[0]}",
        )

    def set_current_generation(self, stream: str, number: int) -> None:
        # Raises for a number that was not added: ``current_generation`` has no foreign key.
        self.generation(stream, number)
        with self._database.write() as connection:
            connection.update(streams, {"current_generation": number}, _THIS, {"stream": stream})

    def add_generation(self, record: GenerationRecord) -> None:
        with self._database.write() as connection:
            connection.upsert(generations, [record._asdict()])

    def switch_generations(self, stream: str, current: int, records: Sequence[GenerationRecord]) -> None:
        with self._database.write() as connection:
            connection.upsert(generations, [one._asdict() for one in records])
            connection.update(streams, {"current_generation": current}, _THIS, {"stream": stream})

    def update_generation(
        self,
        stream: str,
        number: int,
        *,
        query_id: str | None = None,
        layout: Mapping[str, object] | None = None,
        programs: Sequence[Mapping[str, object]] | None = None,
        location: str | None = None,
    ) -> None:
        """Update a generation; ``None`` keeps a value. ``location``: the new place of a moved checkpoint."""
        values = {"query_id": query_id, "location": location, "layout": layout, "programs": programs}
        changed = {name: value for name, value in values.items() if value is not None}
        self.generation(stream, number)
        if changed:
            with self._database.write() as connection:
                this_one = "stream = :stream AND number = :number"
                connection.update(generations, changed, this_one, {"stream": stream, "number": number})

    def remove_generation(self, stream: str, number: int) -> None:
        """Remove a generation with its runs and batches. The caller holds the lease and has taken it out of use."""
        values = {"stream": stream, "number": number}
        with self._database.write() as connection:
            # What refers to a generation first, as the foreign keys require.
            for table in (log_lines, replaced_lines, batches, runs):
                connection.delete(table, "stream = :stream AND generation = :number", values)
            connection.delete(generations, "stream = :stream AND number = :number", values)

    def forget_stream(self, stream: str) -> None:
        values, this_one = {"stream": stream}, "stream = :stream"
        with self._database.write() as connection:
            # First, as these rows are found through the rows of ``operations``.
            of_operations = "operation IN (SELECT id FROM operations WHERE stream = :stream)"
            connection.delete(operation_files, of_operations, values)
            for table in (log_lines, replaced_lines, batches, runs, sink_marks, operations, leases, generations):
                connection.delete(table, this_one, values)
            connection.delete(streams, _THIS, values)

    def relocate(self, old: str, new: str) -> None:
        # With the slash: /data/home is no parent of /data/home2.
        below = old.rstrip("/") + "/"
        with self._database.write() as connection:
            for table, name, key in ((generations, "location", "number"), (operations, "summary", "id")):
                for row in connection.rows(table, ""):
                    if row[name].startswith(below):
                        moved = {name: new.rstrip("/") + row[name].removeprefix(old.rstrip("/"))}
                        values = {"stream": row["stream"], "key": row[key]}
                        connection.update(table, moved, f"stream = :stream AND {key} = :key", values)

    def replace_ids(self, ids: Mapping[str, str]) -> None:
        """Give streams new ids, by full name, and delete all leases: for a copied home."""
        with self._database.write() as connection:
            for stream, identifier in ids.items():
                connection.update(streams, {"id": identifier}, _THIS, {"stream": stream})
            connection.delete(leases, "1 = 1", {})

    def generations(self, stream: str) -> list[GenerationRecord]:
        with self._database.read() as connection:
            rows = connection.rows(generations, "WHERE stream = :stream ORDER BY number", {"stream": stream})
        return [_generation(row) for row in rows]

    def generation(self, stream: str, number: int) -> GenerationRecord:
        known = self.generations(stream)
        for record in known:
            if record.number == number:
                return record
        raise NotFound(
            "generation-unknown",
            f"{stream} has no generation {number}",
            found=", ".join(str(record.number) for record in known) or "no generations",
            hint=f"{command('ledger', stream)} lists the generations",
        )


def _stream(row: Row) -> StreamRecord:
    sink = row["sink"]
    if not all(isinstance(value, str) and is_unicode(value) for value in sink.values()) or (
        sink.get("kind") == "files" and "path" not in sink
    ):
        raise unreadable("the identity of a sink", sink)
    session = tuple(row["session"] or ())
    if not all(isinstance(word, str) and is_unicode(word) for word in session):
        raise unreadable("options of a command", row["session"])
    return StreamRecord(**{name: value for name, value in row.items() if name != "full_name"} | {"session": session})


def _generation(row: Row) -> GenerationRecord:
    record = GenerationRecord(**row)
    if not is_path(record.location):
        raise unreadable("the location of a checkpoint", record.location)
    if not all(isinstance(entry, int) for entry in record.source_cut.values()):
        raise unreadable("entries of sources as integers", record.source_cut)
    if record.layout is not None and not _is_layout(record.layout):
        raise unreadable("the layout of a query's state", record.layout)
    if not all(isinstance(entry, dict) for entry in record.programs or ()):
        raise unreadable("the programs of a query as objects", record.programs)
    return record


def _is_layout(layout: Mapping[str, Any]) -> bool:
    if OPERATORS not in layout:
        return STATE_STORES in layout
    lengths = (layout.get("retention_ms"), layout.get("session_gap_ms"))
    starts = layout.get("window_starts_ms")
    return (
        all(_is_list(layout.get(name), kind) for name, kind in _LISTS.items())
        and all(length is None or isinstance(length, int) for length in lengths)
        and (starts is None or (_is_list(starts, int) and len(starts) == WINDOW_STARTS))
    )


def _is_list(value: object, kind: type) -> bool:
    return isinstance(value, list) and all(isinstance(one, kind) for one in value)


def _unknown(name: str, names: Sequence[str]) -> NotFound:
    near = difflib.get_close_matches(name, [*names, *(known.partition("/")[2] for known in names)], n=1)
    listed = f"known streams: {', '.join(names)}" if names else "no stream has run in this home yet"
    return NotFound(
        "stream-unknown",
        f"The ledger has no stream {name}",
        hint=f"did you mean {near[0]}? {listed}" if near else listed,
    )
