"""Values of a checkpoint: entries of its text logs in Spark's own words, damage, and the report of an inspection.

Damage is a value: one bad file does not stop a report. Source of the facts about entries: ``OffsetSeqLog``,
``CommitLog``, ``FileStreamSourceLog``, ``FileStreamSinkLog``, Spark 3.5-4.3.

Most are named tuples: a dozen dataclasses would take a twentieth of the time of a whole ``slackwater inspect``. Those
with a field ``index`` or ``count`` cannot be tuples.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from slackwater.core.marks import Marks
from slackwater.core.profile import QueryProfile
from slackwater.core.units import GIB, MIB


def holes(first: int, last: int, there: Iterable[int]) -> Iterator[range]:
    """The runs of numbers from ``first`` to ``last`` that are not among those that are ``there``, in order.

    No number of a run is visited: the name of a file can claim 10**17.
    """
    expected = first
    for number in sorted({one for one in there if first <= one <= last} | {last + 1}):
        if number > expected:
            yield range(expected, number)
        expected = number + 1


_CLAUSES: Mapping[str, str] = {
    "checksum": "does not have its checksum",
    "too-new": "is of a newer version",
    "too-large": "is too large",
}


class Damage(NamedTuple):
    """A file of a checkpoint that is not what it should be.

    ``path`` is relative to the checkpoint; ``kind`` is one of torn, empty, missing, foreign, too-new, too-large,
    checksum, unreadable.
    """

    path: str
    kind: str
    expected: str
    found: str

    @property
    def clause(self) -> str:
        """The path with its verb, for a sentence."""
        return f"{self.path} {_CLAUSES.get(self.kind, f'is {self.kind}')}"


class UnreadState(NamedTuple):
    """Files of the state that the next batch loads, whose bytes the check before a start has not verified.

    ``paths`` are relative to the checkpoint. ``size`` is in bytes. ``verified_by_store``: they are on a remote store,
    which compares what it serves with checksums of its own; of other files nothing but name and size is known.
    """

    paths: tuple[str, ...] = ()
    size: int = 0
    verified_by_store: bool = False


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


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """The most bytes taken of one file, and the most that it may decompress to; a larger file counts as damaged.

    ``log_entry`` holds for every file that is not named otherwise, ``compacted_log`` for the ``.compact`` entries of
    file sources and file sinks, ``archive`` for all small files in a RocksDB zip together, ``state`` for the state of
    one store in one partition. ``surplus`` is how much more than 32 times their size all files may decompress to.
    """

    log_entry: int = 64 * MIB
    compacted_log: int = GIB
    archive: int = 256 * MIB
    state: int = 4 * GIB
    surplus: int = 256 * MIB

    @classmethod
    def all(cls, limit: int) -> ReadLimits:
        """All kinds of files with the same limit."""
        return cls(limit, limit, limit, limit, limit)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How much to read. ``batch`` shows the operators as they were then; ``state`` loads state and counts its rows."""

    batch: int | None = None
    state: bool = False
    source_files: bool = False
    limits: ReadLimits = field(default_factory=ReadLimits)


class SparkVersion(NamedTuple):
    """The oldest Spark that writes what is there, and the evidence. ``at_least`` is ``None`` before 3.5."""

    at_least: str | None
    evidence: str


@dataclass(frozen=True, slots=True)
class SourceEnd:
    """The position of a source at the end of a batch: Spark's string, ``None`` where it has no offset yet."""

    name: str
    index: int | None
    end: str | None


class NextBatch(NamedTuple):
    """The batch Spark will run. ``rerun``: its range is fixed already (``end``); ``replan``: only the start is."""

    id: int
    mode: str
    start: tuple[SourceEnd, ...]
    end: tuple[SourceEnd, ...] | None
    watermark_ms: int


class BatchLine(NamedTuple):
    """One batch of the logs. The readings are ``None`` where the entry is absent or damaged.

    ``settings`` are those that the plan pins, ``state_ids`` those of the state that the commit names (format 2).
    """

    id: int
    planned: bool
    committed: bool
    timestamp_ms: int | None = None
    watermark_ms: int | None = None
    next_watermark_ms: int | None = None
    sources: tuple[SourceEnd, ...] = ()
    settings: Mapping[str, str] | None = None
    state_ids: frozenset[str] = frozenset()


class SourceLog(NamedTuple):
    """The own log of a file source: its first and last entry and how many files it lists.

    ``differing`` are the names of older entries that list other files than the newest compacted entry has for them.
    """

    first: int
    last: int
    files: int | None
    entries: tuple[SourceFile, ...] = ()
    differing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceLine:
    """One source. ``kind`` is inferred from its offsets and its log; ``initial`` is where it started, as a string."""

    index: int
    name: str
    kind: str
    log: SourceLog | None = None
    initial: str | None = None


class VersionRange(NamedTuple):
    """State versions that every partition can load, by file names; ``missing`` are those in between that cannot."""

    first: int | None
    last: int | None
    missing: tuple[int, ...] = ()


class StoreLine(NamedTuple):
    """One store of an operator over all partitions; ``rows`` where state was read, ``bytes`` where sizes are known."""

    name: str
    provider: str | None
    versions: VersionRange
    rows: int | None = None
    bytes: int | None = None
    families: tuple[str, ...] = ()


class OperatorLine(NamedTuple):
    """One stateful operator; ``inferred`` where its name was inferred from its stores (Spark 3.5 writes none)."""

    id: int
    name: str
    inferred: bool
    partitions: int
    stores: tuple[StoreLine, ...]
    properties: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class FileTotals:
    """All files below the checkpoint; ``bytes`` where sizes are known."""

    count: int
    bytes: int | None = None


class CheckpointReport(NamedTuple):
    """One inspected checkpoint. ``leftovers`` are files that Spark ignores; they are no damage."""

    location: str
    query_id: str | None
    spark_version: SparkVersion
    offsets_version: int | None
    commits_version: int | None
    marks: Marks
    next_batch: NextBatch | None
    batches: tuple[BatchLine, ...]
    sources: tuple[SourceLine, ...]
    operators: tuple[OperatorLine, ...]
    settings: Mapping[str, str]
    files: FileTotals
    damage: tuple[Damage, ...]
    leftovers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceEvidence:
    """A source by its offsets and its own log. ``kind`` is that of the registry of sources, ``unknown`` for others.

    ``folders`` are the folders of the files that its log lists, or some of them. ``location`` is what it reads, as a
    plan names it (``topics a,b``), where its offsets show that.
    """

    kind: str
    folders: tuple[str, ...] = ()
    location: str = ""


@dataclass(frozen=True, slots=True)
class OperatorEvidence:
    """A stateful operator by its metadata or, where Spark wrote none, by its stores.

    ``name`` is Spark's physical name (``stateStoreSave``); ``key_columns`` are those of its first store.
    """

    name: str
    key_columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckpointShape:
    """Sources in the order of the offset lines, operators by id, and the plan's profile where a run recorded it."""

    sources: tuple[SourceEvidence, ...] = ()
    operators: tuple[OperatorEvidence, ...] = ()
    profile: QueryProfile | None = None
