from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from slackwater.checkpoint.completeness import damage_by_names, leftovers, next_state_files
from slackwater.checkpoint.inventory import Lineage, state_file
from slackwater.checkpoint.layout import (
    COMMITS,
    METADATA,
    OFFSETS,
    SOURCES,
    commit_path,
    is_leftover,
    offset_path,
    parse_id,
    parse_state_file,
    source_path,
    spark_checksum_path,
)
from slackwater.checkpoint.listing import SMALL
from slackwater.checkpoint.logs import damage_of, marks_of_inventory, read_checked
from slackwater.checkpoint.opened import OpenedCheckpoint
from slackwater.checkpoint.operators import schema_paths
from slackwater.checkpoint.reader import read_checkpoint
from slackwater.checkpoint.sources import names_of_entries, parse_source_entry
from slackwater.core.checkpoint import Damage, Depth, StateFileKind, UnreadState, holes
from slackwater.core.errors import FormatError
from slackwater.core.units import MIB
from slackwater.formats.compactible import parse_entry_name
from slackwater.formats.frames import require_frames
from slackwater.formats.rocksdb_zip import RocksDbVersion, parse_rocksdb_zip
from slackwater.formats.state_schema import parse_state_schema
from slackwater.formats.text_log import parse_commit_entry, parse_offset_entry
from slackwater.sources import kind_of
from slackwater.sources.common.source import Source
from slackwater.storage.protocols import hadoop_checksum_path

_MOST_STATE_FILES = 500
_MOST_STATE_BYTES = 64 * MIB
"""State files opened by the cheap check; of others only name and size are checked."""
_NUMBERS_SHOWN = 3
_MOST_DECOMPRESSED_BYTES = 4 * MIB
"""State without a checksum file that is decompressed before a start: about a tenth of a second."""


class FoundDamage(NamedTuple):
    """Damage, and unread files of the next batch's state."""

    damage: tuple[Damage, ...] = ()
    unread: UnreadState = UnreadState()


def find_damage(
    opened: OpenedCheckpoint, depth: Depth = "quick", *, source_logs: Mapping[str, str] | None = None
) -> FoundDamage:
    """Damage of the files that the next start reads; nothing before the first plan. ``source_logs``: log numbers by
    source position.

    ``quick`` takes a fraction of a second. Parsed and compared with Hadoop's checksums: ``metadata``, the newest
    two entries of ``offsets/``, the newest of ``commits/``, each source's newest compacted entry and later entries.
    By names: holes in logs and state. Of the next batch's state version no file is empty, and on a local disk the
    first and last file of each store are whole frames, then files between (up to 500 and 64 MiB), with a RocksDB
    zip's tables. In format 2 only each store's newest file is known: a compressed header in it names the others.

    ``start`` compares all files of that version with checksums, however long it takes: Spark fails at a single
    damaged byte. A remote store verifies the bytes it serves. Of files without a checksum the first 4 MiB are
    decompressed: LZ4 streams have their own. Headers of format 2 are read, too.

    ``all`` finds all damage: it parses every log entry, computes every checksum, decompresses every state file, and
    loads the newest committed state. A file that Spark removes meanwhile is no damage.
    """
    if not opened.logs.offset_ids and not opened.logs.commit_ids:
        return FoundDamage()
    if depth != "all":
        check = _StartCheck(opened, all_state=depth == "start", source_logs=source_logs or {})
        damage = _distinct(check.run())
        return FoundDamage(damage, check.unread_state())
    report = read_checkpoint(opened, state=True, source_files=True)
    start = _StartCheck(opened, source_logs=source_logs or {}).run()
    return FoundDamage(_distinct([*report.damage, *start, *_FileCheck(opened).run()]))


def _distinct(damage: Iterable[Damage]) -> tuple[Damage, ...]:
    found: dict[str, Damage] = {}
    for item in damage:
        found.setdefault(item.path, item)
    return tuple(found.values())


@dataclass(slots=True)
class _Check:
    opened: OpenedCheckpoint
    damage: list[Damage] = field(default_factory=list)

    def _parse(self, path: str, parse: Callable[[bytes], object], *, thorough: bool = False) -> None:
        try:
            checked = read_checked(self.opened.store, self.opened.listing, path, thorough=thorough)
            self.damage.extend(checked.damage)
            if checked.is_sound:
                # Other bytes than Spark wrote may also decompress to anything.
                parse(checked.data)
        except (FormatError, OSError) as error:
            self.damage.append(damage_of(path, error))

    def _size(self, path: str) -> int:
        parent, _, name = path.rpartition("/")
        folder = self.opened.listing.folder(parent)
        return self.opened.store.size(path) if folder.sizes is None else folder.sizes[folder.files.index(name)]

    def _check_tables(self, folder: str, version: RocksDbVersion) -> None:
        for table in version.tables:
            path = f"{folder}/SSTs/{table.stored_name}"
            if not self.opened.listing.has(path):
                self.damage.append(Damage(path, "missing", "a table that a state version lists", "nothing"))
                continue
            size = self._size(path)
            if size != table.size:
                self.damage.append(Damage(path, "torn", f"{table.size} bytes", f"{size} bytes"))


@dataclass(slots=True)
class _StartCheck(_Check):
    all_state: bool = False
    source_logs: Mapping[str, str] = field(default_factory=dict)
    decompress_left: int = _MOST_DECOMPRESSED_BYTES
    unread: dict[str, int] = field(default_factory=dict)
    with_lineage: set[str] = field(default_factory=set)
    """Files read and checked for the names of older files."""

    def unread_state(self) -> UnreadState:
        return UnreadState(tuple(self.unread), sum(self.unread.values()), self.opened.store.traits.remote)

    def run(self) -> list[Damage]:
        logs, listing, inventory = self.opened.logs, self.opened.listing, self.opened.inventory
        self.damage.extend(logs.damage)
        # Opening the checkpoint has parsed these files, but not compared them with their checksums.
        for path, entry in (
            (METADATA, logs.query_id),
            (offset_path(logs.planned), logs.newest_offset),
            (commit_path(logs.committed), logs.newest_commit),
        ):
            if entry is not None and listing.has(hadoop_checksum_path(path)):
                self._parse(path, lambda _: None)
        if len(logs.offset_ids) > 1:
            self._parse(offset_path(logs.offset_ids[-2]), parse_offset_entry)
        elif logs.planned > 0:
            # MicroBatchExecution.populateStartOffsets: the start of the newest batch is the end of the one before.
            path = offset_path(logs.planned - 1)
            self.damage.append(Damage(path, "missing", "the plan of the batch before the newest", "nothing"))
        self._sources()
        self.damage.extend(damage_by_names(self.opened, marks_of_inventory(logs, inventory), logs.newest_commit))
        self._state()
        # Spark compares the query with schemas; a missing schema is a separate finding (SW-STATE-006).
        stores = ((operator, name) for operator in sorted(inventory.stores) for name in inventory.names(operator))
        schemas = (path for operator, name in stores for path in schema_paths(listing, operator, name))
        for path in filter(listing.has, schemas if self.all_state else ()):
            self._parse(path, parse_state_schema)
        return self.damage

    def _sources(self) -> None:
        planned = self._planned_log_offsets()
        for name in sorted({*self.opened.listing.folder(SOURCES).directories, *planned}):
            entries = names_of_entries(self.opened.listing.folder(source_path(name)).files)
            compacted = [number for number, file in entries.items() if file.endswith(".compact")]
            newest = max(entries, default=-1)
            kind = planned[name][0] if name in planned else None
            # CompactibleFileStreamLog.allFiles: the newest compacted entry, and all that came after it.
            first = max(compacted, default=0)
            for number in sorted(number for number in entries if number >= first):
                parse = partial(_require_own_files, kind, entries[number]) if kind is not None else parse_source_entry
                self._parse(source_path(name, entries[number]), parse)
            for hole in holes(first, newest, entries) if name in planned else ():
                missing = "an entry" if hole[0] == hole[-1] else f"entries {hole[0]} to {hole[-1]}"
                path = source_path(name, str(hole[0]))
                self.damage.append(Damage(path, "missing", f"{missing}, as later ones are there", "nothing"))
            if name in planned and newest < planned[name][1]:
                # Spark would give the number to other files, and take them for read.
                path = source_path(name, str(planned[name][1]))
                self.damage.append(Damage(path, "missing", "the files of the newest planned batch", "nothing"))

    def _planned_log_offsets(self) -> dict[str, tuple[Source, int]]:
        newest = self.opened.logs.newest_offset
        found: dict[str, tuple[Source, int]] = {}
        for offset in newest.offsets if newest else ():
            kind = kind_of(offset.text, {})
            entry = kind.cut_entry(offset.text)
            if kind.reads_files and entry is not None:
                log = self.source_logs.get(offset.source, offset.source)
                found[log] = kind, max(entry, found[log][1] if log in found else entry)
        if self.source_logs:
            return found
        # For an unknown query, fewer logs than file sources may mean a DataFrame read twice: the sources of the logs
        # are unknown.
        folders = self.opened.listing.folder(SOURCES).directories
        repeated = len({entry for _, entry in found.values()}) < len(found)
        numbered = set(folders) == {str(number) for number in range(len(folders))}
        return {} if repeated and numbered and len(folders) < len(found) else found

    def _state(self) -> None:
        remote = self.opened.store.traits.remote
        if sum(len(folder.files) for folder in self.opened.listing.folders.values()) > SMALL:
            # To load the libraries alone would take longer than all the rest.
            self.decompress_left = -1
        outer: list[str] = []
        between: list[str] = []
        for paths, candidates, damage in next_state_files(self.opened, self._lineage):
            self.damage.extend(damage)
            for path in paths:
                self._require_bytes(path)
            # A version of one file has the same first and last file, which is read once.
            outer.extend(dict.fromkeys((paths[-1], paths[0])))
            between.extend(paths[1:-1])
            if self.all_state:
                self.unread |= {path: self._size_or_zero(path) for path in candidates}
        if remote:
            # Each would be a request.
            self.unread |= {path: self._size_or_zero(path) for path in (*outer, *between)} if self.all_state else {}
            return
        bytes_left = _MOST_STATE_BYTES
        for number, path in enumerate((*outer, *between)):
            bytes_left -= self._size_or_zero(path)
            if not self.all_state and (bytes_left < 0 or number >= _MOST_STATE_FILES):
                return
            if path not in self.with_lineage:
                self._parse(path, partial(self._check_structure, path), thorough=self.all_state)

    def _lineage(self, path: str) -> Lineage | None:
        """The older files in a changelog's header, which is checked first. Only for ``all_state``, which reads the
        whole file anyway.
        """
        if not self.all_state or self.opened.store.traits.remote:
            return None
        found: list[Lineage] = []

        def check(data: bytes) -> None:
            self._check_structure(path, data)
            found.append(self.opened.check_changes(data, state_file(path.rpartition("/")[2]), whole=False))

        self._parse(path, check, thorough=True)
        self.with_lineage.add(path)
        return found[0] if found else None

    def _require_bytes(self, path: str) -> None:
        try:
            if self._size(path) == 0:
                self.damage.append(Damage(path, "empty", "state", "0 bytes"))
        except OSError as error:
            self.damage.append(damage_of(path, error))

    def _size_or_zero(self, path: str) -> int:
        try:
            return self._size(path)
        except OSError:
            return 0

    def _check_structure(self, path: str, data: bytes) -> None:
        if path.endswith(".zip"):
            version = parse_rocksdb_zip(data, with_files=False, budget=self.opened.store.archive_budget())
            folder = path.rpartition("/")[0]
            self._check_tables(folder, version)
            for table in version.tables if self.all_state else ():
                stored = f"{folder}/SSTs/{table.stored_name}"
                if not self.opened.listing.has(stored):
                    continue
                if self.opened.listing.has(hadoop_checksum_path(stored)):
                    self._parse(stored, lambda _: None, thorough=True)
                else:
                    # RocksDB alone can verify it, and has to open the whole version for that.
                    self.unread[stored] = table.size
            return
        require_frames(data)
        beside = (hadoop_checksum_path(path), spark_checksum_path(path))
        if not self.all_state or any(self.opened.listing.has(one) for one in beside):
            return
        self.decompress_left -= len(data)
        if self.decompress_left < 0:
            self.unread[path] = len(data)
        else:
            self.opened.check_changes(data, state_file(path.rpartition("/")[2]))


def _require_own_files(kind: Source, name: str, data: bytes) -> None:
    """Files have the entry's number, after files of older entries. Raises ``FormatError``.

    ``FileStreamSource.fetchMaxOffset`` writes no empty entry. Spark reads files twice that another entry's copy
    replaces.
    """
    number, compacted = parse_entry_name(name) or (-1, False)
    numbers = [file.log_offset for file in kind.listed(data)]
    in_order = all(before <= after for before, after in pairwise(numbers)) if compacted else len(set(numbers)) == 1
    if numbers and (numbers[-1] != number or not in_order):
        found = ", ".join(map(str, sorted(set(numbers))[-_NUMBERS_SHOWN:]))
        raise FormatError(
            "foreign",
            "the files belong to a different entry",
            expected=f"files with batchId {number}" + (", older ones before them" if compacted else ""),
            found=f"batchId {found}" + ("" if in_order or not compacted else ", not in order"),
        )


@dataclass(slots=True)
class _FileCheck(_Check):
    def run(self) -> list[Damage]:
        commits = {}
        for batch in self.opened.logs.commit_ids:
            # An unreadable commit is met again as a file.
            with suppress(FormatError, OSError):
                commits[batch] = self.opened.logs.commit(batch)
        ignored = set(leftovers(self.opened.listing, commits))
        for folder in self.opened.listing.folders.values():
            for name in folder.files:
                path = f"{folder.path}/{name}" if folder.path else name
                if name.startswith(".") or is_leftover(name) or path in ignored:
                    continue
                before = len(self.damage)
                self._parse(path, partial(self._parse_content, folder.path, name), thorough=True)
                if any(item.path == path and item.kind == "missing" for item in self.damage[before:]):
                    # It was listed, so Spark has removed it since; what must not be missing is found by names.
                    del self.damage[before:]
        return self.damage

    def _parse_content(self, folder: str, name: str, data: bytes) -> None:
        parsed = parse_state_file(name)
        if folder == OFFSETS and parse_id(name) is not None:
            parse_offset_entry(data)
        elif folder == COMMITS and parse_id(name) is not None:
            parse_commit_entry(data)
        elif folder.startswith(f"{SOURCES}/") and parse_entry_name(name):
            parse_source_entry(data)
        elif parsed is not None and parsed.kind is StateFileKind.ZIP:
            self._check_tables(folder, parse_rocksdb_zip(data, budget=self.opened.store.archive_budget()))
        elif parsed is not None:
            self.opened.check_changes(data, parsed)
