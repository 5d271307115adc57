"""Arguments and results of the sources' contract: ranges, positions, ends of runs, availability."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

SourceEntries: TypeAlias = Mapping[int, str]
"""The entries of ``sources/<source>/`` by number, as strings; compacted entries are split."""
NO_LIMIT = str(2**31 - 1)
"""The default of options that limit a batch."""


class SourceRange(NamedTuple):
    """A source's part in a batch, or in consecutive batches.

    ``source`` is its number ("0") or name in the offset log. ``start`` is the offset before the range (``None``: the
    beginning), ``end`` the offset after it (``None``: no offset yet). ``log`` may hold more entries. ``sizes`` are
    recorded bytes by path.
    """

    source: str
    start: str | None
    end: str | None
    log: SourceEntries = MappingProxyType({})
    sizes: Mapping[str, int] = MappingProxyType({})


class EmptyBase(NamedTuple):
    """An empty batch before a range, in a new checkpoint.

    ``log`` are the files of ``sources/<source>/`` that make it empty; they replace files of ``log_until``.
    """

    end: str
    log: Mapping[str, bytes] = MappingProxyType({})


class Asked(NamedTuple):
    """The next batch, which reads from ``start``.

    ``end`` is its planned end, ``start_ms`` is the time at which Spark planned the batch before. ``ids`` are from
    ``LiveSource.ids`` at the start of that run; empty: not recorded.
    """

    start: str | None
    end: str | None = None
    start_ms: int | None = None
    ids: Mapping[str, str] = MappingProxyType({})


class Served(NamedTuple):
    """Positions served now, as offset strings; ``latest`` ``None``: unknown."""

    earliest: str
    latest: str | None = None


class Reach(Protocol):
    """The positions and files that sources can still serve. Callers that may do IO pass an implementation."""

    def exists(self, path: str) -> bool: ...

    def modified_ms(self, path: str) -> int | None:
        """The write time of a file; ``None`` if unknown."""
        ...

    def all_modified_ms(self, paths: Iterable[str]) -> Mapping[str, int]:
        """The write times of files; omits files with an unknown time."""
        ...

    def size(self, path: str) -> int | None:
        """The size in bytes; ``None`` if the file does not exist."""
        ...

    def earliest(self, source: str) -> str | None:
        """The oldest position served, as an offset string; ``None`` if unknown."""
        ...

    def latest(self, source: str) -> str | None:
        """The source's end; ``None`` if unknown."""
        ...


class Replaced(NamedTuple):
    """A file that was changed since it was read: both times, and its bytes if recorded."""

    path: str
    read_ms: int
    found_ms: int
    read_bytes: int | None = None
    found_bytes: int | None = None


class LeftOut(NamedTuple):
    """Files that a source silently omits, by the limit of ``option``.

    ``limit`` and ``found`` are for people; with ``wanted`` the source reads all.
    """

    path: str
    files: int
    option: str
    limit: str
    found: str
    wanted: str


class SparkSource(NamedTuple):
    """A source in a query's plan. ``description`` is Spark's; ``jvm`` and ``relation`` are handles of py4j.

    ``errors`` are the exceptions of calls on these.
    """

    name: str
    description: str
    jvm: Any
    relation: Any
    options: Mapping[str, str]
    errors: tuple[type[Exception], ...] = ()

    @property
    def where(self) -> str:
        return f"source {self.name} ({self.description})"


class SourceSeen(NamedTuple):
    """A source with its recorded position; ``interval`` is the compaction interval."""

    spark: SparkSource
    current: str | None
    log: SourceEntries
    interval: int

    @property
    def name(self) -> str:
        return self.spark.name

    @property
    def where(self) -> str:
        return self.spark.where

    @property
    def read(self) -> SourceRange:
        return SourceRange(self.name, None, self.current, self.log)

    def at(self, base: EmptyBase, change: str) -> Position:
        return Position(self.current, base, f"{self.where}: {change}")


class Position(NamedTuple):
    """A position for a new checkpoint. ``before``: its current offset, if any.

    ``base`` is an empty batch at the target. ``summary`` is for people: source, before -> after, and the data between.
    """

    before: str | None
    base: EmptyBase
    summary: str


class Range(NamedTuple):
    """A batch of a source, as Spark writes it.

    ``log`` is all of ``sources/<source>/``, including the empty batch at ``start``. ``summary`` is for people.
    """

    start: str
    end: str
    log: Mapping[str, bytes] = MappingProxyType({})
    summary: str = "nothing"


class Claims(NamedTuple):
    """A stream's share of a source: ``live`` from the beginning to its position, ``read`` by its batches.

    ``interval`` is the log's compaction interval.
    """

    live: SourceRange
    read: Sequence[SourceRange]
    interval: int


Reached = Literal["end", "before", "unknown"]
End: TypeAlias = Mapping[str, Any]
"""The end of a self-ending run in a source, as JSON; only the kind knows its content."""


class RestartEffect(NamedTuple):
    """The effect of a manual restart, given how the kind's start position is set."""

    risk: Literal["duplicate", "stuck"]
    text: str


class EarlyEnd(NamedTuple):
    """Connectors before ``fixed_in`` end an available-now run after one batch of limited size.

    ``version_class`` has the static method ``version()``; ``limits`` are numeric options in lower case.
    """

    version_class: str
    fixed_in: tuple[int, int]
    limits: frozenset[str]

    def limit_of(self, version: str, options: Mapping[str, str]) -> str | None:
        numbers = re.match(r"(\d+)\.(\d+)", version)
        if numbers is None or (int(numbers[1]), int(numbers[2])) >= self.fixed_in:
            return None
        limited = (name for name, value in options.items() if name.lower() in self.limits and value != NO_LIMIT)
        return next(limited, None)


class Ahead(NamedTuple):
    """A source's data beyond a position: rows, or files with bytes; ``None``: not applicable."""

    rows: int | None = None
    files: int | None = None
    bytes: int | None = None


class Uncounted(Exception):
    """Why unread files are not counted, as the end of a sentence."""
