"""The ledger's sink marks: what each sink contained, each time that this had changed."""

from __future__ import annotations

from sqlalchemy import select

from slackwater.ledger.database import upsert
from slackwater.ledger.part import LedgerPart, as_row
from slackwater.ledger.tables import sink_marks
from slackwater.model.records import SinkMark


class SinkMarksPart(LedgerPart):
    """Sink marks."""

    def record_sink_mark(self, stream: str, written: int, committed: int | None = None) -> None:
        """Record what the sink shows now, and what is committed, if either has changed.

        On a read-only ledger nothing is recorded: a mark is an observation, which the next writer makes as well.
        """
        if self._database.read_only:
            return
        last = self.last_sink_mark(stream)
        if last is not None and (last.written, last.committed) == (written, committed):
            return
        # Two reads may fall into one millisecond, and the clock may have been set back.
        seen_ms = max(self._now_ms(), last.seen_ms + 1) if last is not None else self._now_ms()
        with self._database.write() as connection:
            upsert(connection, sink_marks, [as_row(SinkMark(stream, seen_ms, written, committed))])

    def last_sink_mark(self, stream: str) -> SinkMark | None:
        """The newest mark of a stream's sink, ``None`` if there is none."""
        newest = select(sink_marks).where(sink_marks.c.stream == stream).order_by(sink_marks.c.seen_ms.desc()).limit(1)
        with self._database.read() as connection:
            row = connection.execute(newest).mappings().first()
        return SinkMark(**row) if row else None

    def sink_marks(self, stream: str) -> list[SinkMark]:
        """All marks of a stream's sink, oldest first."""
        query = select(sink_marks).where(sink_marks.c.stream == stream).order_by(sink_marks.c.seen_ms)
        with self._database.read() as connection:
            return [SinkMark(**row) for row in connection.execute(query).mappings()]
