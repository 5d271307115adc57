"""Where a new query would have to begin reading, for those who restart by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


from slackwater.model.checkpoint_logs import SourceFile
from slackwater.plan.batch_history import BatchHistory, offsets_by_source
from slackwater.plan.rebuild import BEFORE_ALL

NO_FILES = '{"logOffset":-1}'
"""How Spark writes the position of a file source that has read nothing."""


@dataclass(frozen=True, slots=True)
class SourcePosition:
    """One source's position. ``offset`` is Spark's text, ``None`` where nobody recorded it or the source has none.

    ``files_read`` and ``files_to_come`` are for file sources: how many files lie before the position, and which files
    that were taken later are known; ``files_read`` is ``None`` where not all entries up to here are recorded.
    """

    source: str
    kind: Literal["kafka", "files", "other"]
    offset: str | None
    files_read: int | None = None
    files_to_come: tuple[SourceFile, ...] = ()


def position_after(past: Past, batch: int) -> tuple[SourcePosition, ...]:
    """The end of a recorded batch, source by source; ``BEFORE_ALL``: where its first batch began."""
    if batch > BEFORE_ALL:
        return tuple(_position(past, source, text) for source, text in offsets_by_source(past.offset(batch)).items())
    if not past.batches:
        return ()
    oldest = offsets_by_source(past.offset(past.batches[0]))
    return tuple(_position(past, source, _start(past, source, text)) for source, text in oldest.items())


def _start(past: Past, source: str, first_end: str | None) -> str | None:
    """Where a source stood before batch 0; Kafka's is recorded, and only it knows what ``latest`` was then."""
    if log_offset(first_end) is not None:
        return NO_FILES
    initial = past.history.sources.get(source, {}).get(0)
    if first_end is not None and is_kafka_offset(first_end) and initial is not None:
        return parse_initial_offsets(initial.encode())
    return None


def _position(past: Past, source: str, text: str | None) -> SourcePosition:
    last = log_offset(text)
    if last is not None:
        recorded = past.history.sources.get(source, {})
        whole = all(entry in recorded for entry in range(last + 1))
        read = len(past.source_files(source, 0, last)) if whole else None
        later = past.source_files(source, last + 1, max(recorded, default=-1))
        return SourcePosition(source, "files", text, read, tuple(later))
    if text is not None and is_kafka_offset(text):
        return SourcePosition(source, "kafka", text)
    return SourcePosition(source, "other", text)
