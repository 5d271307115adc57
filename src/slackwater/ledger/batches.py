"""Batches: progress events, verbatim log lines, and sink marks."""

from collections.abc import Iterable
from typing import Any, get_type_hints

from slackwater.core.checkpoint import NONE_YET
from slackwater.core.records import BatchRecord, BatchSource, LogLine, SinkMark
from slackwater.ledger.lineage import LedgerPart, between
from slackwater.ledger.tables import batches, log_lines, replaced_lines, sink_marks, unreadable

_OFFSETS = "offsets"
_ROWS_AT_ONCE = 10_000
_OWN = "stream = :stream AND generation = :generation AND log = :log"
_LINE = ("entry", "text")
_SUMMARY = (
    "stream", "generation", "batch_id", "timestamp_ms", "input_rows", "run", "event_time_min_ms", "event_time_max_ms",
    "durations_ms",
)  # fmt: skip
_SOURCE = get_type_hints(BatchSource)
_CODEC = ("utf-8", "surrogateescape")
"""The encoding of files: bytes that are not UTF-8 survive the round trip."""


class BatchesPart(LedgerPart):
    def record_batch(self, record: BatchRecord) -> None:
        sources = [source._asdict() for source in record.sources]
        with self._database.write(unflushed=True) as connection:
            connection.upsert(batches, [record._asdict() | {"sources": sources}])

    def batches(
        self, stream: str, first: int | None = None, last: int | None = None, *, generation: int | None = None
    ) -> list[BatchRecord]:
        """The batches, both ends included; each is from the youngest generation in which it counts. ``generation``: its
        past, not the current generation's.
        """
        with self._database.read() as connection:
            counting, values = self._counting(connection, stream, "batch_id", _OFFSETS, generation)
            wanted, span = between("batch_id", first, last)
            condition = f"WHERE {counting} AND {wanted} ORDER BY batch_id, generation"
            rows = connection.rows(batches, condition, values | span)
        newest: dict[int, BatchRecord] = {}
        for row in rows:
            if not all(isinstance(duration, int) for duration in row["durations_ms"].values()):
                raise unreadable("durations as integers", row["durations_ms"])
            for source in row["sources"]:
                if not (
                    isinstance(source, dict)
                    and source.keys() == _SOURCE.keys()
                    and all(isinstance(source[name], kind) for name, kind in _SOURCE.items())
                ):
                    raise unreadable("a source of a batch", source)
            # Of two rows of one batch the younger generation's comes later, and stays.
            sources = tuple(BatchSource(**source) for source in row["sources"])
            newest[row["batch_id"]] = BatchRecord(**(row | {"sources": sources}))
        return list(newest.values())

    def late_rows(self, stream: str, generation: int, first: int) -> int:
        condition = "WHERE stream = :stream AND generation = :generation AND batch_id >= :first AND late_rows > 0"
        with self._database.read() as connection:
            values = {"stream": stream, "generation": generation, "first": first}
            return sum(connection.column(batches, "late_rows", condition, values))

    def batch_summaries(self, stream: str) -> list[BatchRecord]:
        """``batches`` with the fields of ``_SUMMARY`` only: much faster for a long history."""
        with self._database.read() as connection:
            counting, values = self._counting(connection, stream, "batch_id", _OFFSETS)
            rows = connection.tuples(batches, _SUMMARY, f"WHERE {counting} ORDER BY batch_id, generation", values)
        newest = {row[2]: BatchRecord(**dict(zip(_SUMMARY, row, strict=True))) for row in rows}
        return list(newest.values())

    def batch(self, stream: str, batch_id: int) -> BatchRecord | None:
        return next(iter(self.batches(stream, batch_id, batch_id)), None)

    def record_lines(self, lines: Iterable[LogLine], replaced: Iterable[LogLine] = ()) -> None:
        """Record lines atomically; existing entries are replaced. ``replaced`` are the old lines, which are kept
        separately.
        """
        rows = [line._asdict() | {"text": _to_bytes(line.text)} for line in lines]
        seen_ms = self.now_ms()
        kept = [line._asdict() | {"text": _to_bytes(line.text), "seen_ms": seen_ms} for line in replaced]
        with self._database.write(unflushed=True) as connection:
            for start in range(0, len(rows), _ROWS_AT_ONCE):
                connection.upsert(log_lines, rows[start : start + _ROWS_AT_ONCE])
            connection.upsert(replaced_lines, kept)

    def remove_lines(self, stream: str, generation: int, log: str, *, after: int) -> None:
        with self._database.write() as connection:
            values = _own(stream, generation, log) | {"after": after}
            connection.delete(log_lines, f"{_OWN} AND entry > :after", values)

    def replaced_lines(self, stream: str, log: str) -> list[LogLine]:
        with self._database.read() as connection:
            condition = "WHERE stream = :stream AND log = :log ORDER BY seen_ms, entry"
            rows = connection.tuples(replaced_lines, LogLine._fields, condition, {"stream": stream, "log": log})
        return [LogLine._make((*fields, text.decode(*_CODEC))) for *fields, text in rows]

    def recorded_entries(self, stream: str, generation: int, log: str) -> set[int]:
        with self._database.read() as connection:
            return set(connection.column(log_lines, "entry", f"WHERE {_OWN}", _own(stream, generation, log)))

    def entries(self, stream: str, log: str, *, generation: int | None = None) -> set[int]:
        with self._database.read() as connection:
            counting, values = self._counting(connection, stream, "entry", log, generation)
            return set(connection.column(log_lines, "entry", f"WHERE log = :log AND {counting}", values))

    def newest_entry(self, stream: str, log: str) -> int:
        with self._database.read() as connection:
            counting, values = self._counting(connection, stream, "entry", log)
            condition = f"WHERE log = :log AND {counting} ORDER BY entry DESC LIMIT 1"
            found = connection.column(log_lines, "entry", condition, values)
        return next(iter(found), NONE_YET)

    def own_lines(self, stream: str, generation: int, log: str, entries: Iterable[int]) -> dict[int, str]:
        wanted = set(entries)
        condition, span = between("entry", min(wanted, default=0), max(wanted, default=0))
        values = _own(stream, generation, log) | span
        with self._database.read() as connection:
            rows = connection.tuples(log_lines, _LINE, f"WHERE {_OWN} AND {condition}", values)
        return {entry: text.decode(*_CODEC) for entry, text in rows if entry in wanted}

    def lines(
        self, stream: str, log: str, first: int | None = None, last: int | None = None, *, generation: int | None = None
    ) -> dict[int, str]:
        """The lines, both ends included.

        A generation's own lines win. Older entries come from its ancestors, up to the batch (for ``sources/<source>``:
        the entry) at which each younger generation was based. ``generation``: its past, not the current generation's.
        """
        with self._database.read() as connection:
            counting, values = self._counting(connection, stream, "entry", log, generation)
            wanted, span = between("entry", first, last)
            condition = f"WHERE log = :log AND {wanted} AND {counting} ORDER BY entry, generation"
            rows = connection.tuples(log_lines, _LINE, condition, values | span)
        # Of two rows of one entry the younger generation's comes later, and stays.
        return {entry: text.decode(*_CODEC) for entry, text in rows}

    def logs(self, stream: str) -> list[str]:
        with self._database.read() as connection:
            return connection.column(
                log_lines, "log", "WHERE stream = :stream GROUP BY log ORDER BY log", {"stream": stream}
            )


class SinkMarksPart(LedgerPart):
    def record_sink_mark(self, stream: str, written: int, committed: int | None = None) -> None:
        """Record a change. A read-only ledger records nothing: the next writer makes the same observation."""
        if self._database.read_only:
            return
        last = self.last_sink_mark(stream)
        if last is not None and (last.written, last.committed) == (written, committed):
            return
        # Two reads may fall into one millisecond, and the clock may have been set back.
        seen_ms = max(self.now_ms(), last.seen_ms + 1) if last is not None else self.now_ms()
        with self._database.write() as connection:
            connection.upsert(sink_marks, [SinkMark(stream, seen_ms, written, committed)._asdict()])

    def last_sink_mark(self, stream: str) -> SinkMark | None:
        with self._database.read() as connection:
            row = connection.first(sink_marks, "WHERE stream = :stream ORDER BY seen_ms DESC", {"stream": stream})
        return SinkMark(**row) if row else None

    def sink_marks(self, stream: str) -> list[SinkMark]:
        with self._database.read() as connection:
            rows = connection.rows(sink_marks, "WHERE stream = :stream ORDER BY seen_ms", {"stream": stream})
        return [SinkMark(**row) for row in rows]


def _own(stream: str, generation: int, log: str) -> dict[str, Any]:
    return {"stream": stream, "generation": generation, "log": log}


def _to_bytes(text: str) -> bytes:
    return text.encode(*_CODEC)
