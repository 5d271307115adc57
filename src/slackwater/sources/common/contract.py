"""Arguments and results of the sources' contract: ranges, positions, ends of runs, availability."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias, TypeGuard

from slackwater.core.checkpoint import ChangedFile, SourceFile
from slackwater.core.errors import Refused
from slackwater.formats.text_log import LEADING

_LONG = range(-(2**63), 2**63)
_INDEX = re.compile("0|[1-9][0-9]{0,18}")
_FIRST_ENTRY = 0
_KAFKA_VERSION = f"{LEADING}v"
LogShape: TypeAlias = Literal["files", "kafka", "rate", "none"]


def decoded(offset: str | None) -> object:
    """The JSON value; ``None`` for no offset; the string itself if it is not JSON or is ``null``."""
    if offset is None:
        return None
    try:
        value: object = json.loads(offset)
    except (ValueError, RecursionError):
        return offset
    return offset if value is None else value


def is_long(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value in _LONG


def is_index(value: str) -> bool:
    return _INDEX.fullmatch(value) is not None


def may_be_initial_offsets(entry: str) -> bool:
    """Return whether an entry may be Kafka's, even damaged: other connectors write different JSON."""
    version, _, body = entry.partition("\n")
    if not version.startswith(LEADING):
        return False
    value = decoded(body) if version.startswith(_KAFKA_VERSION) else body
    return isinstance(value, str) or (isinstance(value, dict) and all(isinstance(one, dict) for one in value.values()))


def log_shape(log: SourceEntries) -> LogShape:
    """The shape of the log's newest entry; "none" without a recognised entry."""
    if not log:
        return "none"
    newest = max(log)
    version, _, body = log[newest].partition("\n")
    if version.startswith(_KAFKA_VERSION):
        return "kafka" if newest == _FIRST_ENTRY and may_be_initial_offsets(log[newest]) else "none"
    if body.startswith('{"path":'):
        return "files"
    return "rate" if newest == _FIRST_ENTRY and is_index(body.strip()) else "none"


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


@dataclass(frozen=True, slots=True)
class Reach:
    """The positions and files that sources can still serve; ``positions`` are by source, as far as known.

    Callers that may do IO pass a subclass, which asks stores.
    """

    positions: Mapping[str, Served] = field(default_factory=dict)

    def exists(self, path: str) -> bool:
        raise NotImplementedError

    def modified_ms(self, path: str) -> int | None:
        """The write time of a file; ``None`` if unknown."""
        raise NotImplementedError

    def all_modified_ms(self, paths: Iterable[str]) -> Mapping[str, int]:
        """The write times of files; omits files with an unknown time."""
        raise NotImplementedError

    def size(self, path: str) -> int | None:
        """The size in bytes; ``None`` if the file does not exist."""
        raise NotImplementedError

    def earliest(self, source: str) -> str | None:
        """The oldest position served, as an offset string; ``None`` if unknown."""
        served = self.positions.get(source)
        return None if served is None else served.earliest

    def latest(self, source: str) -> str | None:
        """The source's end; ``None`` if unknown."""
        served = self.positions.get(source)
        return None if served is None else served.latest


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


RestartEffect: TypeAlias = tuple[Literal["duplicate", "stuck"], str]
"""The risk of a manual restart, and its effect in words, given how the kind's start position is set."""


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


_BETWEEN = "\x00"


def scala_map(values: Any) -> dict[str, str]:
    """Copy the map in one call: its iterator would need several per entry."""
    entries = str(values.mkString(_BETWEEN)).split(_BETWEEN)
    # At the first arrow: a value may contain another one.
    return {key: value for key, arrow, value in (entry.partition(" -> ") for entry in entries) if arrow}


MS_IN_S = 1000
UNIQUE_NAME = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}[^/]*$")


def without_partitions(folder: str) -> str:
    """The folder above partitions, such as ``day=1``."""
    while "=" in folder.rpartition("/")[2]:
        folder = folder.rpartition("/")[0]
    return folder


def sizes_as_read(files: Iterable[SourceFile], reach: Reach) -> dict[str, int]:
    sizes = {}
    for file in files:
        found_ms, size = reach.modified_ms(file.path), reach.size(file.path)
        if found_ms is not None and size is not None and _same_time(file.timestamp_ms, found_ms):
            sizes[file.path] = size
    return sizes


def replaced_file(file: SourceFile, read_bytes: int | None, reach: Reach) -> ChangedFile | None:
    """The file if it was changed; owners, modes and links do not matter.

    A different time may mean different content of equal size. A name with a UUID, as Spark writes it, identifies the
    content: restoring a backup does not change it.
    """
    found_ms = reach.modified_ms(file.path)
    if found_ms is None:
        return None
    found_bytes = reach.size(file.path) if read_bytes is not None else None
    same_bytes = found_bytes == read_bytes
    same_time = _same_time(file.timestamp_ms, found_ms) or UNIQUE_NAME.search(file.path) is not None
    if same_time and same_bytes:
        return None
    return ChangedFile(file.path, file.timestamp_ms, found_ms, read_bytes, found_bytes)


def _same_time(one_ms: int, other_ms: int) -> bool:
    whole_seconds = one_ms % MS_IN_S == 0 or other_ms % MS_IN_S == 0
    return one_ms == other_ms or (whole_seconds and one_ms // MS_IN_S == other_ms // MS_IN_S)


BY_BATCH = "last-written and batch:N are recorded positions of all sources"
ENDS = "earliest and latest are the ends of what a source has"
SHOWN = 3


def unsupported(
    where: str, what: str, *, expected: str | None = None, found: str | None = None, hint: str = BY_BATCH
) -> Refused:
    """The error for a target of unknown position; the hint describes the possible targets."""
    return Refused(
        "target-unsupported",
        f"The position at the target is unknown: {what}",
        where=where,
        expected=expected,
        found=found,
        hint=hint,
    )


def out_of_range(where: str, what: str, *, expected: str | None = None, found: str, hint: str = ENDS) -> Refused:
    return Refused(
        "target-out-of-range",
        f"The target is outside of the source: {what}",
        where=where,
        expected=expected,
        found=found,
        hint=hint,
    )


def unrecorded(source: SourceSeen, entries: Sequence[str]) -> Refused:
    return unsupported(
        source.where,
        "the files that it has read are not all recorded",
        found=f"entries {', '.join(entries)} of its log are missing",
        hint="earliest, latest, time:... and by:... need no record of them",
    )


def refuse_backward(source: str, found: Sequence[str]) -> None:
    if found:
        raise out_of_range(
            f"source {source}",
            "the range ends before it starts",
            found=listed(found),
            hint="give --to a target that is not before that of --from",
        )


def listed(items: Iterable[str], count: int = SHOWN) -> str:
    found = list(items)
    return ", ".join(found[:count]) + (f" and {len(found) - count} more" if len(found) > count else "")
