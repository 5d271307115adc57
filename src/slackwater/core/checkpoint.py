"""Values of a checkpoint: log entries in Spark's own words, damage, and reports.

Damage is a value: a bad file does not stop a report. Sources: ``OffsetSeqLog``, ``CommitLog``, ``FileStreamSourceLog``,
``FileStreamSinkLog``, Spark 3.5-4.3.

Most are named tuples, which are defined faster than dataclasses. Fields ``index`` and ``count`` rule tuples out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, NamedTuple, TypeAlias

from slackwater.core.program import QueryProfile
from slackwater.core.units import GIB, MIB

NONE_YET = -1

Depth: TypeAlias = Literal["quick", "start", "all"]
"""Which files of a checkpoint are read: a bounded part, all that the next start reads, or every file.

Of an output: the newest batch, or with ``all`` every batch.
"""


@dataclass(frozen=True, slots=True)
class Marks:
    """Batch ids, -1 for none yet, ``None`` for unknown.

    planned: the newest with a fixed source range (``offsets/``); committed: the newest that Spark has finished
    (``commits/``); state: the newest loadable everywhere; written: the newest that all outputs show; pending_no_data:
    the pending no-data batch, which a restart forgets (``checkpoint/logs.py``).
    """

    planned: int = NONE_YET
    committed: int = NONE_YET
    state: int | None = None
    written: int | None = None
    pending_no_data: int | None = None

    @property
    def next_batch(self) -> int:
        return self.planned + 1 if self.committed == self.planned else max(self.planned, 0)

    @property
    def next_is_planned(self) -> bool:
        return self.committed != self.planned


def written_by_all(marks: Iterable[int | None]) -> int | None:
    shown = tuple(marks)
    known = [mark for mark in shown if mark is not None]
    return min(known) if known and len(known) == len(shown) else None


def holes(first: int, last: int, there: Iterable[int]) -> Iterator[range]:
    """The runs of missing numbers. No number is visited: a file's name can claim 10**17."""
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
    """``path`` is relative to the checkpoint; ``kind`` is torn, empty, missing, foreign, too-new, too-large, checksum
    or unreadable.
    """

    path: str
    kind: str
    expected: str
    found: str

    @property
    def clause(self) -> str:
        return f"{self.path} {_CLAUSES.get(self.kind, f'is {self.kind}')}"


class UnreadState(NamedTuple):
    """State files for the next batch whose bytes no check before a start has verified. ``verified_by_store``: a remote
    store checks the bytes it serves; of other files only name and size are known.
    """

    paths: tuple[str, ...] = ()
    size: int = 0
    verified_by_store: bool = False


class OffsetMetadata(NamedTuple):
    """Line 2 of ``offsets/N``.

    ``batch_watermark_ms`` is *used by* batch N (0: none yet); ``conf`` has pinned settings.
    """

    batch_watermark_ms: int
    batch_timestamp_ms: int
    conf: Mapping[str, str]
    extra: Mapping[str, object] = {}


class SourceOffset(NamedTuple):
    """``source`` is the position ("0", "1", ...) or the name of a named source; ``text`` is Spark's line, ``None`` for
    ``-`` (no offset yet).
    """

    source: str
    text: str | None

    @property
    def position(self) -> int | None:
        """``None`` for a named source."""
        return int(self.source) if self.source.isdigit() else None


class OffsetEntry(NamedTuple):
    """``offsets/N``, the write-ahead record of batch N. Continuous mode has no ``metadata``."""

    version: int
    metadata: OffsetMetadata | None
    offsets: tuple[SourceOffset, ...]

    @property
    def watermark_ms(self) -> int:
        """The watermark used by the batch, 0 for none."""
        return self.metadata.batch_watermark_ms if self.metadata else 0


class CommitEntry(NamedTuple):
    """``commits/N``: batch N is done. ``state_unique_ids`` is ``{operator: [partition: [store: id]]}`` (checkpoint
    format 2 only).
    """

    version: int
    next_batch_watermark_ms: int
    state_unique_ids: Mapping[str, list[list[str]]] | None = None
    sink_metadata: Mapping[str, object] | None = None


# A log can list a million files: a named tuple is made in half of a data class's time.
class SourceFile(NamedTuple):
    """``log_offset`` is the entry of a file source's log (field ``batchId``, not the query's batch)."""

    path: str
    timestamp_ms: int
    log_offset: int


class ChangedFile(NamedTuple):
    """A file that was changed since it was read: both times in epoch milliseconds, and its bytes if recorded."""

    path: str
    read_ms: int
    found_ms: int
    read_bytes: int | None = None
    found_bytes: int | None = None


class SinkFile(NamedTuple):
    """``path`` is an absolute, encoded URI."""

    path: str
    size: int
    modification_time_ms: int
    action: str = "add"
    is_dir: bool = False
    block_replication: int = 1
    block_size: int = 33554432


class ReadLimits(NamedTuple):
    """The most bytes of a file, also decompressed; a larger file counts as damaged.

    ``compacted_log`` is for ``.compact`` entries, ``archive`` for all small files in a RocksDB zip together, ``state``
    for a store's state in a partition, ``log_entry`` for other files. ``surplus`` is how much more than 32 times their
    size all files may decompress to.
    """

    log_entry: int = 64 * MIB
    compacted_log: int = GIB
    archive: int = 256 * MIB
    state: int = 4 * GIB
    surplus: int = 256 * MIB

    @classmethod
    def all(cls, limit: int) -> ReadLimits:
        return cls(limit, limit, limit, limit, limit)


class NextBatch(NamedTuple):
    """The batch Spark will run. ``rerun``: its ``end`` is fixed already; ``replan``: only the start is."""

    id: int
    mode: str
    start: tuple[SourceOffset, ...]
    end: tuple[SourceOffset, ...] | None
    watermark_ms: int


class BatchLine(NamedTuple):
    """``None`` for absent or damaged entries. The plan pins ``settings``; the commit names ``state_ids`` (format 2)."""

    id: int
    planned: bool
    committed: bool
    timestamp_ms: int | None = None
    watermark_ms: int | None = None
    next_watermark_ms: int | None = None
    sources: tuple[SourceOffset, ...] = ()
    settings: Mapping[str, str] | None = None
    state_ids: frozenset[str] = frozenset()


class SourceLog(NamedTuple):
    """Older entries in ``differing`` list other files than the newest compacted entry."""

    first: int
    last: int
    files: int | None
    entries: tuple[SourceFile, ...] = ()
    differing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceLine:
    """``kind`` is inferred from offsets and log; ``initial`` is the start, as a string."""

    index: int
    name: str
    kind: str
    log: SourceLog | None = None
    initial: str | None = None


class StoreLine(NamedTuple):
    """State versions ``first`` to ``last`` can be loaded by all partitions, by file names; ``missing`` are gaps."""

    name: str
    provider: str | None
    first: int | None
    last: int | None
    missing: tuple[int, ...]
    rows: int | None = None
    bytes: int | None = None
    families: tuple[str, ...] = ()


class OperatorLine(NamedTuple):
    """``inferred``: the name comes from the stores (Spark 3.5 writes none)."""

    id: int
    name: str
    inferred: bool
    partitions: int
    stores: tuple[StoreLine, ...]
    properties: Mapping[str, object]


class CheckpointReport(NamedTuple):
    """``spark_at_least`` is the oldest possible Spark, ``None`` before 3.5, by ``spark_evidence``. Spark ignores
    ``leftovers``; they are no damage.
    """

    location: str
    query_id: str | None
    spark_at_least: str | None
    spark_evidence: str
    offsets_version: int | None
    commits_version: int | None
    marks: Marks
    next_batch: NextBatch | None
    batches: tuple[BatchLine, ...]
    sources: tuple[SourceLine, ...]
    operators: tuple[OperatorLine, ...]
    settings: Mapping[str, str]
    file_count: int
    file_bytes: int | None
    damage: tuple[Damage, ...]
    leftovers: tuple[str, ...] = ()


class SourceEvidence(NamedTuple):
    """``kind`` is of the registry, else ``unknown``.

    ``folders`` have some of the log's files. ``location`` is as a plan names it (``topics a,b``), if the offsets show
    it.
    """

    kind: str
    folders: tuple[str, ...] = ()
    location: str = ""


class CheckpointShape(NamedTuple):
    """Sources in offset order, and a recorded plan's profile. ``operators`` are by id: Spark's physical name
    (``stateStoreSave``), and the first store's key columns.
    """

    sources: tuple[SourceEvidence, ...] = ()
    operators: tuple[tuple[str, tuple[str, ...]], ...] = ()
    profile: QueryProfile | None = None


class StateFileKind(StrEnum):
    """Whole state (``snapshot``, ``zip``) or changes since the version before (``delta``, ``changelog``)."""

    DELTA = "delta"
    SNAPSHOT = "snapshot"
    ZIP = "zip"
    CHANGELOG = "changelog"

    @property
    def is_whole(self) -> bool:
        """Whether a version loads without an older file."""
        return self in {StateFileKind.SNAPSHOT, StateFileKind.ZIP}

    @property
    def provider(self) -> str:
        """``hdfs`` (HDFSBackedStateStoreProvider) or ``rocksdb`` (RocksDBStateStoreProvider)."""
        return "hdfs" if self in {StateFileKind.DELTA, StateFileKind.SNAPSHOT} else "rocksdb"


class StateFile(NamedTuple):
    """A state file by name. Only checkpoint format 2 has a ``unique_id``. Batch N reads state version N and makes
    version N+1; version 0 is empty and has no file.
    """

    version: int
    kind: StateFileKind
    unique_id: str | None = None


class StoreVersions(NamedTuple):
    """Loadable versions of a store in a partition, by file names. ``ids`` are the unique ids of a version's files
    (format 2); a failed attempt leaves extra ids.
    """

    provider: str | None
    loadable: frozenset[int]
    ids: frozenset[tuple[int, str]] = frozenset()
    newest: int = 0
    newest_loadable: int = 0

    def has(self, version: int, unique_id: str | None = None) -> bool:
        """Whether the version, of this attempt if ids are used, can be loaded."""
        if version == 0:
            return True
        return version in self.loadable and (unique_id is None or (version, unique_id) in self.ids)


@dataclass(frozen=True, slots=True)
class StateInventory:
    """Versions as ``stores[operator][partition][store]``."""

    stores: dict[int, dict[int, dict[str, StoreVersions]]] = field(default_factory=dict)

    def names(self, operator: int) -> tuple[str, ...]:
        """An operator's stores, counted once over its partitions."""
        return tuple(sorted({name for stores in self.stores.get(operator, {}).values() for name in stores}))

    def each(self) -> Iterator[tuple[int, int, str, StoreVersions]]:
        """``(operator, partition, store, versions)``, in order."""
        for operator, partitions in sorted(self.stores.items()):
            for partition, stores in sorted(partitions.items()):
                for name, versions in sorted(stores.items()):
                    yield operator, partition, name, versions
