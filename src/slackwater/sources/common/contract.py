"""What kinds of sources are asked with and answer: ranges, positions, ends of runs, and what can still be served."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

SourceEntries: TypeAlias = Mapping[int, str]
"""The entries of ``sources/<source>/`` by number, as strings; compacted ones are split."""
NO_LIMIT = str(2**31 - 1)
"""The default of options that limit a batch."""


@dataclass(frozen=True, slots=True)
class SourceRange:
    """What one source contributed to a batch, or to consecutive batches.

    ``source`` is its position ("0") or its name in the offset log. ``start`` is the offset before the range (``None``:
    the beginning), ``end`` the offset after it (``None``: the source has no offset yet). ``log`` may hold more entries
    than the range needs. ``sizes`` has the bytes of files by their paths, as far as they were recorded when the files
    were read.
    """

    source: str
    start: str | None
    end: str | None
    log: SourceEntries = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EmptyBase:
    """An empty batch before a range, in a new checkpoint.

    ``end`` is the source's offset in the entry of that batch. ``log`` are the files of ``sources/<source>/`` that make
    the batch empty; they replace files of the same name from ``log_until``.
    """

    end: str
    log: Mapping[str, bytes] = field(default_factory=dict)


class Asked(NamedTuple):
    """The next batch, of which a source is asked what it has: it reads from ``start``.

    ``end`` is its end, if it is planned, and ``start_ms`` is when Spark planned the batch that ends at ``start``.
    ``ids`` are those that ``LiveSource.ids`` gave when the run started that planned it; empty: not recorded.
    """

    start: str | None
    end: str | None = None
    start_ms: int | None = None
    ids: Mapping[str, str] = MappingProxyType({})


class Served(NamedTuple):
    """The positions that a source serves now, as offset strings; ``latest`` is ``None`` where it is unknown."""

    earliest: str
    latest: str | None = None


class Reach(Protocol):
    """What sources can still serve now. Callers that may do IO pass one in."""

    def exists(self, path: str) -> bool:
        """Whether a source file exists; ``path`` is the URI or path as recorded."""
        ...

    def modified_ms(self, path: str) -> int | None:
        """When a source file was last written, ``None`` where that is unknown."""
        ...

    def all_modified_ms(self, paths: Iterable[str]) -> Mapping[str, int]:
        """When each of many source files was last written, without those of which that is unknown."""
        ...

    def size(self, path: str) -> int | None:
        """The bytes of a source file, ``None`` where it does not exist."""
        ...

    def earliest(self, source: str) -> str | None:
        """The oldest position that a source still serves, as an offset string; ``None`` where it is unknown."""
        ...

    def latest(self, source: str) -> str | None:
        """The end of a source now, as ``earliest``."""
        ...


@dataclass(frozen=True, slots=True)
class Replaced:
    """A file that is not the one that was read: when each was written, and its bytes where they are recorded."""

    path: str
    read_ms: int
    found_ms: int
    read_bytes: int | None = None
    found_bytes: int | None = None


class LeftOut(NamedTuple):
    """Files that a source leaves out silently: the first one, how many, and by which limit of its ``option``.

    ``limit`` and ``found`` are for people; ``wanted`` is a value of the option with which the source reads all of them.
    """

    path: str
    files: int
    option: str
    limit: str
    found: str
    wanted: str


@dataclass(frozen=True, slots=True)
class SparkSource:
    """A source in the plan of a query. ``description`` is Spark's; ``jvm`` and ``relation`` are handles of py4j.

    ``errors`` are what calls of these raise.
    """

    name: str
    description: str
    jvm: Any
    relation: Any
    options: Mapping[str, str]
    errors: tuple[type[Exception], ...] = ()

    @property
    def where(self) -> str:
        """The source for people."""
        return f"source {self.name} ({self.description})"


@dataclass(frozen=True, slots=True)
class SourceSeen:
    """A source of a query with its position. ``current`` and ``log`` are recorded; ``interval`` is of compactions."""

    spark: SparkSource
    current: str | None
    log: SourceEntries
    interval: int

    @property
    def name(self) -> str:
        """The number of the source in the query."""
        return self.spark.name

    @property
    def where(self) -> str:
        """The source for people."""
        return self.spark.where

    @property
    def read(self) -> SourceRange:
        """From the beginning to the recorded position."""
        return SourceRange(self.name, None, self.current, self.log)

    def at(self, base: EmptyBase, change: str) -> Position:
        """The position with this base; ``change`` is what it means for the source, for people."""
        return Position(self.current, base, f"{self.where}: {change}")


@dataclass(frozen=True, slots=True)
class Position:
    """Where a source is at a target. ``before``: its current offset, ``None`` for none yet.

    ``base`` is an empty batch at the position. ``summary`` is a line for people: the source, before -> after, and what
    is in between.
    """

    before: str | None
    base: EmptyBase
    summary: str


@dataclass(frozen=True, slots=True)
class Range:
    """One batch of one source: ``start``, and ``end`` as Spark writes it; equal for an empty one.

    ``log`` is the whole of ``sources/<source>/``, also for the empty batch at ``start`` before it. ``summary`` is for
    people.
    """

    start: str
    end: str
    log: Mapping[str, bytes] = field(default_factory=dict)
    summary: str = "nothing"


@dataclass(frozen=True, slots=True)
class Claims:
    """What a stream has of a source: ``live`` is from the beginning to where it is, ``read`` is by its batches.

    ``interval`` is that of compactions of the source's own log.
    """

    live: SourceRange
    read: Sequence[SourceRange]
    interval: int


Reached = Literal["end", "before", "unknown"]
End: TypeAlias = Mapping[str, Any]
"""Where a run that ends by itself ends in one source, as JSON; what is in it is known to the kind."""


@dataclass(frozen=True, slots=True)
class RestartEffect:
    """What a manual restart meets because of how the start position of the kind is set."""

    risk: Literal["duplicate", "stuck"]
    text: str


@dataclass(frozen=True, slots=True)
class EarlyEnd:
    """A defect of older connectors: a run with the trigger available-now ends after one batch of a limited size.

    Versions older than ``fixed_in`` have it. ``version_class`` has the static method ``version()``; ``limits`` are
    options in lower case, each a number.
    """

    version_class: str
    fixed_in: tuple[int, int]
    limits: frozenset[str]

    def limit_of(self, version: str, options: Mapping[str, str]) -> str | None:
        """The option with which a run ends early; ``None`` where it reads everything, or the version is unknown."""
        numbers = re.match(r"(\d+)\.(\d+)", version)
        if numbers is None or (int(numbers[1]), int(numbers[2])) >= self.fixed_in:
            return None
        limited = (name for name, value in options.items() if name.lower() in self.limits and value != NO_LIMIT)
        return next(limited, None)


class Ahead(NamedTuple):
    """What a source has beyond a position: rows, or files with their bytes; ``None``: it has no such."""

    rows: int | None = None
    files: int | None = None
    bytes: int | None = None


class Uncounted(Exception):
    """Why the unread files of a source are not counted, as the end of a sentence about the source."""
