"""Entries of the text logs of a checkpoint, in Spark's own words.

Source of the facts: ``OffsetSeqLog``, ``CommitLog``, ``FileStreamSourceLog``, ``FileStreamSinkLog``, Spark 3.5-4.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class OffsetMetadata:
    """Line 2 of ``offsets/N``: what batch N was planned with.

    ``batch_watermark_ms`` is the watermark *used by* batch N (0: none yet); ``conf`` holds the pinned settings.
    """

    batch_watermark_ms: int
    batch_timestamp_ms: int
    conf: Mapping[str, str]
    extra: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SourceOffset:
    """The end of batch N for one source.

    ``source`` is the position ("0", "1", ...) or, with named sources, the name; ``text`` is Spark's line, verbatim,
    and ``None`` where the log has ``-`` (the source has no offset yet).
    """

    source: str
    text: str | None


@dataclass(frozen=True, slots=True)
class OffsetEntry:
    """``offsets/N``: the write-ahead record of batch N. ``metadata`` is absent in continuous mode."""

    version: int
    metadata: OffsetMetadata | None
    offsets: tuple[SourceOffset, ...]

    @property
    def watermark_ms(self) -> int:
        """The watermark used by the batch; 0 where there is none."""
        return self.metadata.batch_watermark_ms if self.metadata else 0


@dataclass(frozen=True, slots=True)
class CommitEntry:
    """``commits/N``: batch N is done.

    ``state_unique_ids`` is ``{operator: [partition: [store: id]]}`` (checkpoint format 2 only).
    """

    version: int
    next_batch_watermark_ms: int
    state_unique_ids: Mapping[str, list[list[str]]] | None = None
    sink_metadata: Mapping[str, object] | None = None


# A log can list a million files: a named tuple is made in half of a data class's time.
class SourceFile(NamedTuple):
    """A file taken by a file source in entry ``log_offset`` of its log (field ``batchId``, not the query's batch)."""

    path: str
    timestamp_ms: int
    log_offset: int


class SinkFile(NamedTuple):
    """A data file that counts, in the file sink's log. ``path`` is an absolute, encoded URI."""

    path: str
    size: int
    modification_time_ms: int
    action: str = "add"
    is_dir: bool = False
    block_replication: int = 1
    block_size: int = 33554432
