"""Reads a checkpoint's text logs and marks without decoding state."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple, TypeVar

from slackwater.checkpoint.inventory import read_inventory
from slackwater.checkpoint.layout import (
    COMMITS,
    METADATA,
    OFFSETS,
    SOURCES,
    commit_path,
    offset_path,
    spark_checksum_path,
)
from slackwater.checkpoint.listing import Listing, limited, read_listing
from slackwater.core.checkpoint import NONE_YET, CommitEntry, Damage, Marks, OffsetEntry, StateInventory, StoreVersions
from slackwater.core.errors import FormatError
from slackwater.core.program import QueryProfile
from slackwater.core.units import size_text
from slackwater.formats.checksums import hadoop_mismatch, parse_spark_checksum
from slackwater.formats.text_log import parse_commit_entry, parse_offset_entry, parse_query_metadata
from slackwater.storage.protocols import FileTooLarge, ReadStore, hadoop_checksum_path

PARTITIONS_SETTING = "spark.sql.shuffle.partitions"


_Parsed = TypeVar("_Parsed")


class CheckpointLogs(NamedTuple):
    """The text logs: their ids, and entries on demand.

    ``offset_ids`` and ``commit_ids`` may be sparse (purging, async progress). ``damage`` is of the query id and each
    log's newest entry.
    """

    store: ReadStore
    query_id: str | None
    offset_ids: tuple[int, ...]
    commit_ids: tuple[int, ...]
    sources: tuple[str, ...]
    newest_offset: OffsetEntry | None
    newest_commit: CommitEntry | None
    damage: tuple[Damage, ...]

    @property
    def planned(self) -> int:
        return self.offset_ids[-1] if self.offset_ids else NONE_YET

    @property
    def committed(self) -> int:
        return self.commit_ids[-1] if self.commit_ids else NONE_YET

    def offset(self, batch: int) -> OffsetEntry:
        """Raises ``FileNotFoundError`` or ``FormatError``."""
        return parse_offset_entry(self.store.read(offset_path(batch)))

    def commit(self, batch: int) -> CommitEntry:
        """Raises ``FileNotFoundError`` or ``FormatError``."""
        return parse_commit_entry(self.store.read(commit_path(batch)))


def read_logs(store: ReadStore) -> CheckpointLogs:
    """Damage is a value; an absent log is empty."""
    store = limited(store)
    names = {log: store.list(log) for log in (OFFSETS, COMMITS, SOURCES)}
    folders = {
        log: Listing.of(log, (entry.name for entry in entries if not entry.is_dir)) for log, entries in names.items()
    }
    sources = tuple(sorted((entry.name for entry in names[SOURCES] if entry.is_dir), key=source_order))
    return _logs(store, folders[OFFSETS].ids(OFFSETS), folders[COMMITS].ids(COMMITS), sources)


def logs_of_listing(store: ReadStore, listing: Listing) -> CheckpointLogs:
    sources = tuple(sorted(listing.folder(SOURCES).directories, key=source_order))
    return _logs(store, listing.ids(OFFSETS), listing.ids(COMMITS), sources)


def _logs(
    store: ReadStore, offset_ids: tuple[int, ...], commit_ids: tuple[int, ...], sources: tuple[str, ...]
) -> CheckpointLogs:
    damage: list[Damage] = []

    def read(path: str, parse: Callable[[bytes], _Parsed]) -> _Parsed | None:
        try:
            return parse(store.read(path))
        except (FormatError, OSError) as error:
            damage.append(damage_of(path, error))
            return None

    query_id = read(METADATA, parse_query_metadata)
    offset = read(offset_path(offset_ids[-1]), parse_offset_entry) if offset_ids else None
    commit = read(commit_path(commit_ids[-1]), parse_commit_entry) if commit_ids else None
    return CheckpointLogs(store, query_id, offset_ids, commit_ids, sources, offset, commit, tuple(damage))


def marks(store: ReadStore) -> Marks:
    """The marks, except for the sink's."""
    store = limited(store)
    listing = read_listing(store)
    return marks_of_inventory(logs_of_listing(store, listing), read_inventory(listing))


def marks_of_inventory(logs: CheckpointLogs, inventory: StateInventory) -> Marks:
    # The newest batch that all stores can load, by file names; -1 for none.
    state = next(loadable_batches(logs, inventory), NONE_YET) if inventory.stores else None
    return Marks(planned=logs.planned, committed=logs.committed, state=state)


def loadable_batches(logs: CheckpointLogs, inventory: StateInventory) -> Iterator[int]:
    """The newest first."""
    if any(versions.ids for _, _, _, versions in inventory.each()):
        # In format 2 the commit names the batch's files; others of the version do not count.
        yield from (batch for batch in reversed(logs.commit_ids) if _named_by_commit(logs, batch, inventory))
    elif inventory.stores:
        found = (_common_versions(inventory, count) for count in _partition_counts(logs) or {None})
        yield from sorted((version - 1 for version in frozenset[int]().union(*found)), reverse=True)


def _common_versions(inventory: StateInventory, partition_count: int | None) -> frozenset[int]:
    found: set[frozenset[int]] = set()
    for operator, partitions in inventory.stores.items():
        names = inventory.names(operator)
        for partition in expected_partitions(partitions, partition_count):
            held = partitions.get(partition, {})
            found.update(held[name].loadable if name in held else frozenset() for name in names)
        # Without this set the other operators alone would decide, and the mark would be too high.
        if not names:
            found.add(frozenset())
    return frozenset.intersection(*found) if found else frozenset()


def expected_partitions(present: Iterable[int], partition_count: int | None) -> tuple[int, ...]:
    """All partitions, or only 0 for an operator with a single partition."""
    there = tuple(sorted(present))
    if partition_count is None or there == (0,):
        return there
    return tuple(range(partition_count))


def partitions_of_version(
    present: Mapping[int, Mapping[str, StoreVersions]], version: int, entry: OffsetEntry | None
) -> tuple[int, ...]:
    """The pinned partitions, and others with the version. An offline repartition to fewer partitions leaves the other
    directories.
    """
    expected = expected_partitions(present, partition_count(entry) if entry else None) if present else ()
    held = (number for number, stores in present.items() if any(one.has(version) for one in stores.values()))
    return tuple(sorted({*expected, *held}))


def _partition_counts(logs: CheckpointLogs) -> set[int | None]:
    """By the newest and the newest committed entry: a failed repartition changed only the first."""
    entries = [logs.newest_offset]
    if logs.committed in logs.offset_ids and logs.committed != logs.planned:
        with suppress(FormatError, OSError):
            entries.append(logs.offset(logs.committed))
    return {partition_count(entry) for entry in entries if entry is not None}


def partition_count(entry: OffsetEntry) -> int | None:
    text = entry.metadata.conf.get(PARTITIONS_SETTING, "") if entry.metadata else ""
    return int(text) if text.isascii() and text.isdigit() and 0 < len(text) < 7 else None  # noqa: PLR2004


def _named_by_commit(logs: CheckpointLogs, batch: int, inventory: StateInventory) -> bool:
    try:
        commit = logs.commit(batch)
    except (FormatError, OSError):
        return False
    for operator, partitions in (commit.state_unique_ids or {}).items():
        there = inventory.stores.get(int(operator) if operator.isdigit() else NONE_YET, {})
        for partition, ids in enumerate(partitions):
            stores = there.get(partition, {})
            if not all(any(held.has(batch + 1, unique_id) for held in stores.values()) for unique_id in ids):
                return False
    return bool(commit.state_unique_ids)


def source_order(name: str) -> tuple[int, int, str]:
    return (0, int(name), "") if name.isascii() and name.isdigit() else (1, 0, name)


def damage_of(path: str, error: FormatError | OSError) -> Damage:
    if isinstance(error, FormatError):
        return Damage(path, error.code, error.expected or "", error.found or error.message)
    if isinstance(error, FileNotFoundError):
        return Damage(path, "missing", "a file", "nothing")
    if isinstance(error, FileTooLarge):
        found = "more" if error.size is None else size_text(error.size)
        return Damage(path, "too-large", f"at most {size_text(error.limit)}", found)
    return Damage(path, "unreadable", "a readable file", error.strerror or str(error))


class CheckedFile(NamedTuple):
    """A file's bytes, whether a checksum of all matched, and damage."""

    data: bytes
    verified: bool
    damage: tuple[Damage, ...] = ()

    @property
    def is_sound(self) -> bool:
        return not any(item.kind == "checksum" for item in self.damage)


def read_checked(store: ReadStore, listing: Listing, path: str, *, thorough: bool = True) -> CheckedFile:
    """Raises ``OSError`` if the file cannot be read. ``thorough`` computes Spark's CRC-32C, which needs numpy; else
    only the recorded size is compared.
    """
    data = store.read(path)
    damage: list[Damage] = []
    verified = False
    beside = hadoop_checksum_path(path)
    if listing.has(beside):
        # Hadoop reads a file unchecked if its side file is malformed; so it is still read, with damage.
        try:
            mismatch = hadoop_mismatch(data, store.read(beside))
            verified = mismatch is None
            damage += [] if mismatch is None else [Damage(path, "checksum", "the bytes of Hadoop's checksum", mismatch)]
        except (FormatError, OSError) as error:
            damage.append(damage_of(beside, error))
    beside = spark_checksum_path(path)
    if listing.has(beside) and not path.endswith(".crc"):
        # Either checksum covers every byte of the file, so one that matches is enough.
        verified = _check_spark(store, path, beside, data, damage, thorough=thorough) or verified
    return CheckedFile(data, verified, tuple(damage))


def _check_spark(
    store: ReadStore, path: str, beside: str, data: bytes, damage: list[Damage], *, thorough: bool
) -> bool:
    try:
        algorithm, value, size = parse_spark_checksum(store.read(beside))
    except (FormatError, OSError) as error:
        damage.append(damage_of(beside, error))
        return False
    mismatch = None
    if size != len(data):
        mismatch = f"{len(data)} bytes instead of {size}"
    # Spark 4.1 to 4.3 write CRC32C only; another algorithm is from a newer release, and no damage.
    elif thorough and algorithm == "CRC32C":
        import google_crc32c  # noqa: PLC0415  (a library that most commands do without)

        found = google_crc32c.value(data)
        mismatch = None if found == value else f"CRC32C {found:#010x} instead of {value:#010x}"
    if mismatch is not None:
        damage.append(Damage(path, "checksum", "the bytes of Spark's checksum", mismatch))
    return mismatch is None and thorough


def read_or_damage(store: ReadStore, listing: Listing, path: str, damage: list[Damage]) -> bytes | None:
    """``None`` for an unreadable file, which is added to the damage."""
    try:
        # Spark writes checksums of its own for state files only, so numpy would be imported for nothing.
        checked = read_checked(store, listing, path, thorough=False)
    except OSError as error:
        damage.append(damage_of(path, error))
        return None
    damage.extend(checked.damage)
    return checked.data


NO_DATA_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"


def no_data_entry(
    logs: CheckpointLogs, profile: QueryProfile | None, output_mode: str, *, enabled: bool, now_ms: int
) -> OffsetEntry | None:
    """The entry of the pending batch without data, which a restart forgets; None without such a batch.

    A running query follows a batch that advanced the watermark with a batch without data, which writes the windows that
    the watermark closed and drops the rows that it made late. Spark decides on it from the last execution
    (``lastExecution.shouldRunAnotherBatch`` in ``MicroBatchExecution``), which a restarted query lacks: the batch would
    wait for new data, and rows that an uninterrupted run drops as late would be counted. With its entry in ``offsets/``
    Spark runs it as a planned batch (measured: exact, 4.1.3).

    Without a ``profile``, state counts as an operator on event time. ``enabled`` is
    ``spark.sql.streaming.noDataMicroBatches.enabled``.
    """
    entry, commit = logs.newest_offset, logs.newest_commit
    if entry is None or entry.metadata is None or commit is None or logs.planned != logs.committed:
        return None
    if profile is None:
        asks_for_batches = output_mode != "complete"
    else:
        asks_for_batches = bool(profile.watermark_delays_ms and profile.operators and profile.asks_for_batches)
    if not enabled or not asks_for_batches:
        return None
    if commit.next_batch_watermark_ms <= entry.metadata.batch_watermark_ms:
        return None
    # `current_timestamp()` and timeouts in processing time read this time, which has to be that of planning, as in
    # Spark.
    metadata = entry.metadata._replace(batch_watermark_ms=commit.next_batch_watermark_ms, batch_timestamp_ms=now_ms)
    return entry._replace(metadata=metadata)
