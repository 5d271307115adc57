"""Loads the pairs of a store in a partition at a version."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from slackwater.checkpoint.layout import store_path
from slackwater.checkpoint.listing import LimitedStore, Listing
from slackwater.checkpoint.logs import CheckedFile, damage_of, read_checked
from slackwater.checkpoint.state.inventory import (
    Lineage,
    VersionFiles,
    files_of_attempt,
    files_of_version,
    state_file,
)
from slackwater.checkpoint.state.rocksdb_tables import read_tables
from slackwater.core.checkpoint import Damage, StateFileKind
from slackwater.core.errors import FormatError
from slackwater.formats.byte_view import ByteView
from slackwater.formats.changelog import parse_changelog, parse_changelog_header
from slackwater.formats.codecs import decompress
from slackwater.formats.crc32c import without_delete_checksums
from slackwater.formats.frames import Budget
from slackwater.formats.rocksdb_zip import TableFile, parse_rocksdb_zip
from slackwater.formats.state_records import Records, join_records, last_writes, records_of_pairs, walk_records


@dataclass(frozen=True, slots=True)
class StorePlace:
    """``unique_id`` is set in checkpoint format 2."""

    operator: int
    partition: int
    store: str
    version: int
    unique_id: str | None = None

    @property
    def folder(self) -> str:
        return store_path(self.operator, self.partition, self.store)


@dataclass(frozen=True, slots=True)
class LoadedStore:
    """Live pairs, their number by family if Spark wrote it, and the families' numbers."""

    records: Records
    families: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class StateLoader:
    """Loads versions through a listing; wrong checksums go to ``damage``."""

    store: LimitedStore
    listing: Listing
    damage: list[Damage] = field(default_factory=list)
    _budget: Budget = field(default_factory=Budget)

    def load(self, place: StorePlace, *, row_checksums: bool = False) -> LoadedStore:
        """Raises ``FormatError`` with the file in ``where``."""
        # Version 0 is empty and has no file.
        if place.version == 0:
            return LoadedStore(records_of_pairs([], []))
        self._budget = self.store.state_budget()
        files = self.files(place)
        parts: list[Records] = []
        families: dict[str, int] = {}
        if files.base is not None:
            with located(f"{place.folder}/{files.base}"):
                base, families = self._whole(place.folder, files.base)
            parts.append(base)
        for name in files.steps:
            with located(f"{place.folder}/{name}"):
                changes = self._changes(place.folder, name)
                # A deleted key has its checksum in front, with which it would not match the key that was put.
                parts.append(without_delete_checksums(changes) if row_checksums else changes)
        records = parts[0] if len(parts) == 1 and files.base_is_sorted else last_writes(join_records(parts))
        return LoadedStore(records, families)

    def files(self, place: StorePlace) -> VersionFiles:
        names = self.listing.folder(place.folder).files
        with located(place.folder):
            if place.unique_id is None:
                return files_of_version(names, place.version)
            return files_of_attempt(
                names, place.version, place.unique_id, lambda name: self._lineage(place.folder, name)
            )

    def _lineage(self, folder: str, name: str) -> Lineage:
        with located(f"{folder}/{name}"):
            return parse_changelog_header(self._stream(f"{folder}/{name}"))[1]

    def _stream(self, path: str) -> ByteView:
        checked = self._read(path)
        return decompress(checked.data, check=not checked.verified, budget=self._budget)

    def _read(self, path: str) -> CheckedFile:
        checked = read_checked(self.store, self.listing, path)
        if not checked.is_sound:
            raise _unsound(checked.damage)
        self.damage.extend(checked.damage)
        return checked

    def _changes(self, folder: str, name: str) -> Records:
        plain = self._stream(f"{folder}/{name}")
        if state_file(name).kind is StateFileKind.CHANGELOG:
            return parse_changelog(plain).records
        return walk_records(plain)

    def _whole(self, folder: str, name: str) -> tuple[Records, dict[str, int]]:
        path = f"{folder}/{name}"
        if state_file(name).kind is StateFileKind.SNAPSHOT:
            return walk_records(self._stream(path)), {}
        version = parse_rocksdb_zip(self._read(path).data, budget=self.store.archive_budget())
        records = read_tables(version, lambda table: self._table(folder, table), self._budget)
        return records, dict(version.column_families)

    def _table(self, folder: str, table: TableFile) -> Path | bytes:
        path = f"{folder}/SSTs/{table.stored_name}"
        with located(path):
            local = self.store.local_path(path)
            size = self.store.size(path)
            if size != table.size:
                raise FormatError("torn", "the table was cut", expected=f"{table.size} bytes", found=f"{size} bytes")
            # RocksDB verifies a sum over each block that it reads.
            return self.store.read(path) if local is None else Path(local)


@contextmanager
def located(path: str) -> Iterator[None]:
    """Adds the file to errors; the innermost file stays. ``OSError`` is translated."""
    try:
        yield
    except FormatError as error:
        if error.where is None:
            error.where = path
        raise
    except OSError as error:
        damage = damage_of(path, error)
        raise FormatError(
            damage.kind, "a file cannot be read", where=path, expected=damage.expected, found=damage.found
        ) from error


def _unsound(damage: tuple[Damage, ...]) -> FormatError:
    first = next(item for item in damage if item.kind == "checksum")
    return FormatError(
        "checksum", f"{first.path} differs from its checksum", expected=first.expected, found=first.found
    )
