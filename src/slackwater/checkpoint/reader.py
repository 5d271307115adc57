"""Reads a checkpoint into a report. Damage is a value; nothing is written."""

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import TypeVar

from slackwater.checkpoint.completeness import damage_by_names, leftovers, named_state
from slackwater.checkpoint.layout import (
    COMMITS,
    METADATA,
    OFFSETS,
    SST_FOLDERS,
    STATE,
    commit_path,
    offset_path,
    parse_state_file,
    store_path,
)
from slackwater.checkpoint.listing import SMALL, Listing, bytes_of
from slackwater.checkpoint.logs import damage_of, marks_of_inventory, partitions_of_version, read_or_damage
from slackwater.checkpoint.opened import OpenedCheckpoint
from slackwater.checkpoint.operators import OperatorReader
from slackwater.checkpoint.sources import SourceReader
from slackwater.core.checkpoint import (
    BatchLine,
    CheckpointReport,
    CheckpointShape,
    CommitEntry,
    Damage,
    Marks,
    NextBatch,
    OffsetEntry,
    OperatorLine,
    ReadLimits,
    SourceEvidence,
    StateFileKind,
    StateInventory,
    StoreLine,
)
from slackwater.core.errors import FormatError
from slackwater.core.program import QueryProfile
from slackwater.core.state import Operator, OperatorStore
from slackwater.formats.frames import Budget, Surplus
from slackwater.formats.rocksdb_zip import parse_rocksdb_zip
from slackwater.formats.state_schema import parse_state_schema
from slackwater.formats.text_log import decode_text, parse_commit_entry, parse_offset_entry, render_json
from slackwater.sources import kind_of
from slackwater.storage.protocols import hadoop_checksum_path

_Entry = TypeVar("_Entry", OffsetEntry, CommitEntry)
_NEWEST_OF_MANY = 3
"""Log entries read of a large remote checkpoint; each costs a request."""
_READ_AT_ONCE = 16
MOST_GAPS = 1000


@dataclass(slots=True)
class CheckpointReader:
    """``batch`` shows operators as they were then; ``state`` loads state and counts its rows."""

    opened: OpenedCheckpoint
    batch: int | None = None
    state: bool = False
    source_files: bool = False
    damage: list[Damage] = field(default_factory=list)
    _file_count: int = field(init=False)

    def __post_init__(self) -> None:
        self._file_count = sum(len(folder.files) for folder in self.opened.listing.folders.values())

    def read(self) -> CheckpointReport:
        logs, listing, inventory = self.opened.logs, self.opened.listing, self.opened.inventory
        # Damage of the newest entries of both logs is found again below, where all entries are parsed.
        self.damage.extend(item for item in logs.damage if item.path == METADATA)
        known_offsets = self._known(logs.planned, logs.newest_offset, offset_path)
        offsets = self._entries(logs.offset_ids, known_offsets, offset_path, parse_offset_entry)
        known_commits = self._known(logs.committed, logs.newest_commit, commit_path)
        commits = self._entries(logs.commit_ids, known_commits, commit_path, parse_commit_entry)
        newest = offsets.get(logs.planned)
        marks = marks_of_inventory(logs, inventory)
        reader = OperatorReader(self.opened.store, listing, inventory)
        operators = reader.operators(self.batch)
        self.damage.extend(reader.damage)
        sources = SourceReader(self.opened.store, listing, with_files=self.source_files)
        # Where the newest entry is damaged, an older one still has the sources.
        source_lines = sources.sources(newest or next(iter(offsets.values()), None))
        batches = sorted({*self._kept(logs.offset_ids), *self._kept(logs.commit_ids)})
        batch = marks.committed if self.batch is None else self.batch
        operator_lines = tuple(self._operator_line(operator, batch, offsets.get(batch)) for operator in operators)
        self.damage.extend(sources.damage)
        self.damage.extend(damage_by_names(self.opened, marks, commits.get(marks.committed)))
        if self._is_small and not self._is_remote:
            # Checksums of unread files on a local disk, with only the standard library. Of a small local checkpoint all
            # entries of both logs have been read already.
            rest = (one for one in listing.folders.values() if one.path not in {OFFSETS, COMMITS})
            paths = ((one.path, name) for one in rest for name in one.files if not name.startswith("."))
            for parent, name in paths:
                self._read(f"{parent}/{name}" if parent else name)
        release, evidence = oldest_spark(newest, commits.get(logs.committed), operators, listing, inventory)
        return CheckpointReport(
            location=self.opened.store.location,
            query_id=logs.query_id,
            spark_at_least=release,
            spark_evidence=evidence,
            offsets_version=newest.version if newest else None,
            commits_version=commits[logs.committed].version if logs.committed in commits else None,
            marks=marks,
            next_batch=next_batch(marks, offsets, commits, logs.offset_ids),
            batches=tuple(self._batch_line(batch, offsets.get(batch), commits.get(batch)) for batch in batches),
            sources=source_lines,
            operators=operator_lines,
            settings=newest.metadata.conf if newest and newest.metadata else {},
            file_count=self._file_count,
            file_bytes=self._bytes_of(self.opened.listing.folders),
            damage=tuple({(item.path, item.kind): item for item in reversed(self.damage)}.values())[::-1],
            leftovers=tuple(leftovers(listing, commits)),
        )

    @property
    def _is_small(self) -> bool:
        return self._file_count <= SMALL

    @property
    def _sizes_are_asked(self) -> bool:
        return self._is_small or self.state

    @property
    def _is_remote(self) -> bool:
        return self.opened.store.traits.remote

    def _kept(self, ids: tuple[int, ...]) -> list[int]:
        """All entries, but of a large remote checkpoint only the newest and the requested entry."""
        if self._is_small or not self._is_remote:
            return list(ids)
        asked = {self.batch, (self.batch or 0) - 1} if self.batch is not None else set()
        return sorted(set(ids[-_NEWEST_OF_MANY:]) | (asked & set(ids)))

    def _entries(
        self,
        ids: tuple[int, ...],
        known: dict[int, _Entry],
        path_of: Callable[[int], str],
        parse: Callable[[bytes], _Entry],
    ) -> dict[int, _Entry]:
        entries = dict(known)
        batches = [batch for batch in self._kept(ids) if batch not in known]
        if self._is_remote:
            from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - light start: brings logging

            # Each costs a request.
            with ThreadPoolExecutor(_READ_AT_ONCE) as pool:
                read = list(pool.map(self._read, map(path_of, batches)))
        else:
            read = [self._read(path_of(batch)) for batch in batches]
        found = {batch: data for batch, data in zip(batches, read, strict=True) if data is not None}
        for batch, data in found.items():
            try:
                entries[batch] = parse(data)
            except FormatError as error:
                self.damage.append(damage_of(path_of(batch), error))
        return entries

    def _known(self, batch: int, entry: _Entry | None, path_of: Callable[[int], str]) -> dict[int, _Entry]:
        """The newest entry, so that it is not requested again."""
        has_checksum = self.opened.listing.has(hadoop_checksum_path(path_of(batch)))
        return {} if entry is None or has_checksum or not self._is_remote else {batch: entry}

    def _read(self, path: str) -> bytes | None:
        return read_or_damage(self.opened.store, self.opened.listing, path, self.damage)

    def _operator_line(self, operator: Operator, batch: int, plan: OffsetEntry | None) -> OperatorLine:
        present = self.opened.inventory.stores.get(operator.id, {})
        partitions = [one for one in partitions_of_version(present, batch + 1, plan) if one in present]
        stores = tuple(self._store_line(operator, store, batch, partitions) for store in operator.stores)
        return OperatorLine(operator.id, operator.name, operator.inferred, len(partitions), stores, operator.properties)

    def _store_line(self, operator: Operator, store: OperatorStore, batch: int, partitions: Sequence[int]) -> StoreLine:
        present = self.opened.inventory.stores.get(operator.id, {})
        held = [present[one][store.name] for one in partitions if store.name in present[one]]
        common = frozenset.intersection(*{versions.loadable for versions in held}) if held else frozenset()
        rows = size = None
        if self.state and batch >= 0:
            from slackwater.checkpoint.state.reader import StateReader  # noqa: PLC0415  (imports numpy and pyarrow)

            reader = StateReader(self.opened.batch_state(batch))
            rows = reader.count(operator, store)
            self.damage.extend(reader.damage)
        if self._sizes_are_asked or self._is_remote:
            paths = [store_path(operator.id, partition, store.name) for partition in present]
            size = self._bytes_of([*paths, *(f"{path}/{name}" for path in paths for name in SST_FOLDERS)])
        return StoreLine(
            store.name,
            next((versions.provider for versions in held if versions.provider), None),
            *version_range(common),
            rows=rows,
            bytes=size,
            families=tuple(family.name for family in store.families) if store.with_families else (),
        )

    def _bytes_of(self, paths: Iterable[str]) -> int | None:
        return bytes_of(self.opened.store, self.opened.listing, paths, ask=self._sizes_are_asked)

    def _batch_line(self, batch: int, offset: OffsetEntry | None, commit: CommitEntry | None) -> BatchLine:
        logs = self.opened.logs
        return BatchLine(
            batch,
            planned=batch in logs.offset_ids,
            committed=batch in logs.commit_ids,
            timestamp_ms=offset.metadata.batch_timestamp_ms if offset and offset.metadata else None,
            watermark_ms=offset.watermark_ms if offset else None,
            next_watermark_ms=commit.next_batch_watermark_ms if commit else None,
            sources=offset.offsets if offset else (),
            settings=offset.metadata.conf if offset and offset.metadata else None,
            state_ids=named_state(commit) if commit else frozenset(),
        )


def version_range(versions: frozenset[int]) -> tuple[int | None, int | None, tuple[int, ...]]:
    """The first and last version, and gaps."""
    if not versions:
        return None, None, ()
    first, last = min(versions), max(versions)
    gaps = (number for number in range(first, last) if number not in versions)
    # A file name can claim version 10**17.
    return first, last, tuple(islice(gaps, MOST_GAPS))


def next_batch(
    marks: Marks, offsets: dict[int, OffsetEntry], commits: dict[int, CommitEntry], ids: tuple[int, ...]
) -> NextBatch | None:
    """Spark's next batch (``MicroBatchExecution.populateStartOffsets``), if known. A batch starts at the end of the
    entry before it, which with asynchronous progress is not the id before it.
    """
    if marks.planned < 0:
        return NextBatch(0, "replan", (), None, 0)
    newest = offsets.get(marks.planned)
    if newest is None:
        return None
    if marks.committed == marks.planned:
        commit = commits.get(marks.committed)
        # Spark raises the watermark of the plan to that of the commit and never lowers it; very old commits have none.
        watermark = max(newest.watermark_ms, commit.next_batch_watermark_ms if commit else 0)
        return NextBatch(marks.planned + 1, "replan", newest.offsets, None, watermark)
    before = offsets.get(ids[-2]) if len(ids) > 1 else None
    return NextBatch(marks.planned, "rerun", before.offsets if before else (), newest.offsets, newest.watermark_ms)


def read_checkpoint(
    opened: OpenedCheckpoint, *, batch: int | None = None, state: bool = False, source_files: bool = False
) -> CheckpointReport:
    return CheckpointReader(opened, batch, state, source_files).read()


@contextmanager
def collector_off() -> Iterator[None]:
    """Turns garbage collection off inside. May be nested."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


_PREFIX = "spark.sql."
_FIRST_PINNED = (
    ("4.3", "streaming.statefulOperator.alwaysNullableOutput.enabled"),
    ("4.3", "dropDuplicates.deterministicKeyOrder.enabled"),
    ("4.2", "streaming.stateStore.rowChecksum.enabled"),
    ("4.2", "streaming.stateStore.rocksdb.mergeOperatorVersion"),
    ("4.2", "streaming.queryEvolution.enableSourceEvolution"),
    ("4.0", "streaming.stateStore.encodingFormat"),
    ("3.5", "optimizer.pruneFiltersCanPruneStreamingSubplan"),
)
"""Settings by the release that first pinned them. They show who wrote the newest entry, not who started the log."""


def oldest_spark(
    offset: OffsetEntry | None,
    commit: CommitEntry | None,
    operators: tuple[Operator, ...],
    listing: Listing,
    inventory: StateInventory,
) -> tuple[str | None, str]:
    """The newest release that anything in the checkpoint needs, and the evidence."""
    conf = offset.metadata.conf if offset and offset.metadata else {}
    found = [
        (version, f"the newest offsets entry pins {_PREFIX}{name}")
        for version, name in _FIRST_PINNED
        if _PREFIX + name in conf
    ]
    if offset is not None and offset.version > 1:
        found.append(("4.2", f"offsets log version {offset.version}"))
    if commit is not None and commit.version > 1:
        found.append(({2: "4.0"}.get(commit.version, "4.2"), f"commits log version {commit.version}"))
    if any(not operator.inferred for operator in operators):
        found.append(("4.0", "operator metadata"))
    families = {family.name for operator in operators for store in operator.stores for family in store.families}
    if "left-keyWithTsToValues" in families:
        found.append(("4.2", "join state format 4"))
    elif "left-keyWithIndexToValue" in families:
        found.append(("4.1", "join state format 3"))
    # The first partition of each operator; the others are written alike.
    first = (f"state/{operator}/{min(held)}" for operator, held in inventory.stores.items() if held)
    names = (name for path in first for name in listing.folder(path).files)
    if not any(versions.ids for _, _, _, versions in inventory.each()) and any(
        name.endswith(".crc") and not name.startswith(".") for name in names
    ):
        found.append(("4.1", "checksums next to state files"))
    if not found:
        return None, "no pinned settings or state"
    version = max(version for version, _ in found)
    return version, next(evidence for release, evidence in found if release == version)


_HADOOP_MAGIC = b"crc\0"


def file_text(path: str, data: bytes, limits: ReadLimits) -> str:
    """Raises ``FormatError`` if the file does not have the format of its name."""
    name = path.rstrip("/").rpartition("/")[2]
    state_file = parse_state_file(name)
    if state_file is not None and state_file.kind is StateFileKind.ZIP:
        version = parse_rocksdb_zip(data, budget=Budget(limits.archive, surplus=Surplus(limits.surplus)))
        tables = [asdict(table) for table in version.tables]
        families = dict(version.column_families)
        return render_json(
            {"tables": tables, "rows": version.rows, "families": families, "files": sorted(version.files)}
        )
    if state_file is not None:
        return _records(data, state_file.kind, Budget(limits.state, surplus=Surplus(limits.surplus)))
    if name == "schema" or "/_stateSchema/" in path:
        return render_json(asdict(parse_state_schema(data)))
    if data.startswith(_HADOOP_MAGIC) or name.endswith(".sst"):
        return data.hex(" ", 4)
    # Kafka's initial offsets start with a NUL byte, which a terminal does not show.
    return decode_text(data).replace("\0", "\\0")


def _records(data: bytes, kind: StateFileKind, budget: Budget) -> str:
    from slackwater.checkpoint.state.changelog import (  # noqa: PLC0415  (imports numpy and pyarrow)
        decompress,
        parse_changes,
    )

    records, version, lineage = parse_changes(decompress(data, budget=budget), kind)
    lines = [] if version is None else [render_json({"version": version, "lineage": lineage})]
    for index in range(len(records)):
        fields = {"op": records.operation(index), "key": records.key(index).hex(), "value": records.value(index).hex()}
        lines.append(render_json(fields))
    return "\n".join(lines)


def shape_of(opened: OpenedCheckpoint, profile: QueryProfile | None) -> CheckpointShape:
    """The shape of a query as its checkpoint shows it."""
    entry, listing = opened.logs.newest_offset, opened.listing
    # A source that the entry does not have, but that has a folder, is the past of another generation.
    ends = {one.source: one.text for one in entry.offsets} if entry is not None else {}
    sources = [
        SourceEvidence(
            line.kind,
            tuple(sorted({file.path.rpartition("/")[0] for file in line.log.entries} if line.log is not None else ())),
            kind_of(ends.get(line.name), {}).location(ends.get(line.name)),
        )
        for line in SourceReader(opened.store, listing, with_files=True).sources(entry)[: len(ends)]
    ]
    known = OperatorReader(opened.store, listing, opened.inventory).operators() if STATE in listing.folders else ()
    families = [(operator.name, operator.stores[0].families if operator.stores else ()) for operator in known]
    operators = tuple((name, keyed[0].key.names if keyed else ()) for name, keyed in families)
    return CheckpointShape(tuple(sources), operators, profile)
