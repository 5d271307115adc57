"""The contract of a source kind: what its offsets and its own log in ``sources/<source>/`` mean.

A kind is stateless and pure. Offsets are Spark's strings, verbatim; ``None`` is no offset yet (``-`` in the
offset log) and for the beginning. The methods accept any string: from an offset of another kind nothing is derived.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from slackwater.model.checkpoint_logs import SourceFile

SourceEntries: TypeAlias = Mapping[int, str]
"""The entries of ``sources/<source>/`` by number, as strings; compacted ones are split."""


@dataclass(frozen=True, slots=True)
class SourceRange:
    """What one source contributed to a batch, or to consecutive batches.

    ``source`` is its position ("0") or its name in the offset log. ``start`` is the offset before the range (``None``:
    the beginning), ``end`` the offset after it (``None``: the source has no offset yet). ``log`` may hold more entries
    than the range needs.
    """

    source: str
    start: str | None
    end: str | None
    log: SourceEntries = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EmptyBase:
    """An empty batch before a range, in a new checkpoint.

    ``end`` is the source's offset in the entry of that batch. ``log`` are the files of ``sources/<source>/`` that make
    the batch empty; they replace files of the same name from ``log_until``.
    """

    end: str
    log: Mapping[str, bytes] = field(default_factory=dict)


class Reach(Protocol):
    """What sources can still serve now. Callers that may do IO pass one in."""

    def exists(self, path: str) -> bool:
        """Whether a source file exists; ``path`` is the URI or path as recorded."""
        ...

    def earliest(self, source: str) -> str | None:
        """The oldest position that a source still serves, as an offset string; ``None`` where it is unknown."""
        ...


class Source(Protocol):
    """One kind of source, as ``registry`` finds it."""

    @property
    def kind(self) -> str:
        """The stable name of the kind, under which the registry finds it."""
        ...

    def owns(self, offset: object, log: SourceEntries) -> bool:
        """Whether a source with this offset and log is of this kind. At most one kind owns any pair; never raises.

        ``offset`` is the decoded JSON, ``None`` where there is no offset yet, the string itself where it is not JSON.
        ``log`` may be lazy: only the entries that are needed are read.
        """
        ...

    def empty_base(self, start: str | None) -> EmptyBase | None:
        """The empty batch before a range from ``start``; ``None`` where no empty range is known for this kind."""
        ...

    def first_log(self, base: EmptyBase) -> Mapping[str, bytes] | None:
        """The files of ``sources/<source>/`` with which a checkpoint without any batch starts at this position.

        ``None`` where Spark has no way to start there.
        """
        ...

    def log_until(self, end: str | None, log: SourceEntries, interval: int) -> Mapping[str, bytes]:
        """The files of ``sources/<source>/`` of a checkpoint whose newest offset is ``end`` (``None``: no offset yet).

        ``interval`` is the compaction interval in effect. Every entry up to ``end`` must be in ``log``: check
        ``unrecorded`` first, with a range from the beginning.
        """
        ...

    def rows(self, span: SourceRange) -> int | None:
        """The number of rows in a range, where the offsets alone determine it."""
        ...

    def counted(self, span: SourceRange) -> Mapping[str, int | None] | None:
        """How many offsets or files are in a range, by part (a partition); negative where it ends before its start.

        A part that the start does not name starts at 0; ``None`` for one that the end lacks. ``None`` as a whole where
        it cannot be known. Raises FormatError for a malformed entry.
        """
        ...

    def unrecorded(self, span: SourceRange) -> tuple[str, ...]:
        """The entries of ``sources/<source>/`` that the range needs and ``log`` lacks: "5", or "5..9" for several."""
        ...

    def files(self, span: SourceRange) -> tuple[SourceFile, ...]:
        """The files that the range reads, as far as they are in ``log``. Raises FormatError for a malformed entry."""
        ...

    def unavailable(self, span: SourceRange, reach: Reach) -> tuple[str, ...]:
        """What the source can no longer serve of the range, for people. Raises FormatError for a malformed entry."""
        ...

    def claimed(self, span: SourceRange, live: SourceRange, read: Sequence[SourceRange]) -> tuple[str, ...] | None:
        """What of a range is not free for a backfill, for people.

        That is what one of ``read`` reads too, and what is not within ``live``, the range from the beginning to where
        the stream is. ``None`` where it cannot be known.
        """
        ...

    def free(self, live: SourceRange, read: Sequence[SourceRange]) -> tuple[str, ...]:
        """What a backfill may read, for people: that within ``live`` which none of ``read`` reads."""
        ...

    def initial(self, log: SourceEntries) -> str | None:
        """The position before batch 0, where it is recorded or is the same for all sources of the kind.

        Raises FormatError for a malformed entry.
        """
        ...

    def describe(self, offset: str | None) -> str:
        """The position for people, on one line."""
        ...

    def cut_entry(self, end: str | None) -> int | None:
        """The last entry of ``sources/<source>/`` that belongs to a checkpoint at ``end`` (-1: none of them).

        ``None``: all of them do.
        """
        ...
