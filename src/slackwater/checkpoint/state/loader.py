"""Loads the pairs of a store in a partition at a version; of RocksDB by itself, through ``rocksdict``.

For RocksDB a temporary directory has the zip's small files and the SSTs under RocksDB's names; local SSTs are linked,
not copied. Nothing of the checkpoint is opened for writing.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import NamedTuple

import numpy as np

from slackwater.checkpoint.inventory import Lineage, files_of_attempt, files_of_version, state_file
from slackwater.checkpoint.layout import store_path
from slackwater.checkpoint.listing import LimitedStore, Listing
from slackwater.checkpoint.logs import CheckedFile, damage_of, read_checked
from slackwater.checkpoint.state import rocksdb_scan
from slackwater.checkpoint.state.changelog import decompress, parse_changelog_header, parse_changes
from slackwater.checkpoint.state.decoder import without_delete_checksums
from slackwater.checkpoint.state.records import (
    ByteView,
    Records,
    join_records,
    last_writes,
    records_of_alternating,
    records_of_pairs,
    walk_records,
)
from slackwater.checkpoint.state.rocksdb_scan import Frame, read_frames, scan
from slackwater.core.checkpoint import Damage, StateFileKind
from slackwater.core.errors import FormatError
from slackwater.formats.frames import Budget
from slackwater.formats.rocksdb_zip import RocksDbVersion, TableFile, parse_rocksdb_zip

_WORTH_A_PROCESS = 1 << 20
"""Bytes of tables: fewer are scanned in about the time that a process takes to start."""
_PIPE_BYTES = 1 << 20
_USUAL_RATIO = 8
"""Pairs are mostly at most so much larger than tables; unwritten memory costs nothing."""
FetchTable = Callable[[TableFile], "Path | bytes"]
"""An SST's absolute path if it is local, else its bytes."""


def read_tables(version: RocksDbVersion, fetch: FetchTable, budget: Budget | None = None) -> Records:
    """All pairs in key order. Merge operands come joined with a comma. Raises ``FormatError``; ``too-large`` above the
    budget.
    """
    if not version.tables:
        return records_of_pairs([], [])
    with tempfile.TemporaryDirectory(prefix="slackwater-") as folder:
        directory = Path(folder)
        _lay_out(directory, version, fetch)
        return _scan(folder, sum(table.size for table in version.tables), budget or Budget())


def _lay_out(directory: Path, version: RocksDbVersion, fetch: FetchTable) -> None:
    for name, data in version.files.items():
        if "/" in name or name in {"", ".", ".."}:
            raise FormatError("foreign", "a path inside the zip", expected="file names", found=name)
        # The write-ahead log is off in Spark; its empty file would only be replayed.
        if not name.endswith(".log"):
            (directory / name).write_bytes(data)
    for table in version.tables:
        fetched = fetch(table)
        target = directory / table.local_name
        if isinstance(fetched, Path):
            target.symlink_to(fetched)
        else:
            target.write_bytes(fetched)


def _scan(directory: str, size: int, budget: Budget) -> Records:
    if size >= _WORTH_A_PROCESS:
        # Whatever went wrong there is met again here, and here it has a name.
        with suppress(OSError, EOFError):
            return _collect(_scan_elsewhere(directory), size, budget)
    # rocksdict raises plain `Exception` for whatever RocksDB reports: corruption, a missing table, unknown options.
    try:
        return _collect(scan(directory), size, budget)
    except FormatError:
        raise
    except Exception as error:
        raise FormatError(
            "torn", "RocksDB cannot read the version", expected="sound tables", found=str(error)
        ) from error


def _scan_elsewhere(directory: str) -> Iterator[Frame]:
    # Without -P the folder of the script would be first in `sys.path`, and its modules would hide others of their
    # names.
    command = [sys.executable, "-P", rocksdb_scan.__file__, directory]
    with subprocess.Popen(command, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, pipesize=_PIPE_BYTES) as process:
        try:
            if process.stdout is not None:
                yield from read_frames(process.stdout)
        finally:
            # All output is written, or the reader has exited: an orderly shutdown would take 10 ms.
            process.kill()


def _collect(frames: Iterable[Frame], size: int, budget: Budget) -> Records:
    lengths = [np.empty(0, np.int32)]
    most = budget.most(size)

    def pieces() -> Iterator[bytes]:
        total = 0
        for of_some, data in frames:
            total += len(data)
            if total > most:
                raise budget.exceeded("more", size)
            lengths.append(np.frombuffer(of_some, np.int32))
            yield data

    view = ByteView.joined(pieces(), min(_USUAL_RATIO * size, most))
    budget.take(view.length, size)
    return records_of_alternating(view, np.concatenate(lengths).astype(np.int64))


class StorePlace(NamedTuple):
    """``unique_id`` is set in checkpoint format 2."""

    operator: int
    partition: int
    store: str
    version: int
    unique_id: str | None = None

    @property
    def folder(self) -> str:
        return store_path(self.operator, self.partition, self.store)


LoadedStore = tuple[Records, dict[str, int]]
"""Live pairs, and the numbers of the families, as far as the files name them."""


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
            return records_of_pairs([], []), {}
        self._budget = self.store.state_budget()
        files = self.files(place)
        parts: list[Records] = []
        families: dict[str, int] = {}
        for name in files:
            with located(f"{place.folder}/{name}"):
                if state_file(name).kind.is_whole:
                    part, families = self._whole(place.folder, name)
                else:
                    part = parse_changes(self._stream(f"{place.folder}/{name}"), state_file(name).kind)[0]
                    # A deleted key has its checksum in front, with which it would not match the key that was put.
                    part = without_delete_checksums(part) if row_checksums else part
            parts.append(part)
        # RocksDB writes each key once.
        is_sorted = len(files) == 1 and files[0].endswith(".zip")
        return parts[0] if is_sorted else last_writes(join_records(parts)), families

    def files(self, place: StorePlace) -> tuple[str, ...]:
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
        wrong = next((item for item in checked.damage if item.kind == "checksum"), None)
        if wrong is not None:
            found = f"{wrong.path} differs from its checksum"
            raise FormatError("checksum", found, expected=wrong.expected, found=wrong.found)
        self.damage.extend(checked.damage)
        return checked

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
