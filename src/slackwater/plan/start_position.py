"""Where a new query would have to start reading, for those who restart by hand."""

from __future__ import annotations

from dataclasses import dataclass

from slackwater.model.checkpoint_logs import SourceFile
from slackwater.plan.basis import BEFORE_ALL
from slackwater.plan.batch_history import BatchHistory, offsets_by_source
from slackwater.sources.contract import SourceRange


@dataclass(frozen=True, slots=True)
class SourcePosition:
    """One source's position. ``offset`` is Spark's string, ``None`` where it is not recorded or the source has none.

    ``kind`` is that of the source. ``files_read`` and ``files_to_come`` are for sources that read files: how many are
    before the position, and which were recorded after it; ``files_read`` is ``None`` where not all are recorded.
    """

    source: str
    kind: str
    offset: str | None
    files_read: int | None = None
    files_to_come: tuple[SourceFile, ...] = ()


def position_after(batches: BatchHistory, batch: int) -> tuple[SourcePosition, ...]:
    """The end of a recorded batch, source by source; ``BEFORE_ALL``: where its first batch started."""
    if not batches.batches:
        return ()
    if batch > BEFORE_ALL:
        ends = offsets_by_source(batches.offset(batch))
        return tuple(_position(batches, source, offset) for source, offset in ends.items())
    oldest = offsets_by_source(batches.offset(batches.batches[0]))
    return tuple(_position(batches, source, _initial(batches, source, offset)) for source, offset in oldest.items())


def _initial(batches: BatchHistory, source: str, first_end: str | None) -> str | None:
    """The position before batch 0; for Kafka it is recorded, because ``latest`` of that time has no other record."""
    return batches.kind(source, first_end).initial(batches.history.sources.get(source, {}))


def _position(batches: BatchHistory, source: str, offset: str | None) -> SourcePosition:
    log = batches.history.sources.get(source, {})
    kind = batches.kind(source, offset)
    before = SourceRange(source, None, offset, log)
    newest = offsets_by_source(batches.offset(batches.batches[-1])).get(source)
    later = kind.files(SourceRange(source, offset, newest, log))
    if not later and not kind.files(SourceRange(source, None, newest, log)):
        return SourcePosition(source, kind.kind, offset)
    read = None if kind.unrecorded(before) else len(kind.files(before))
    return SourcePosition(source, kind.kind, offset, read, later)
