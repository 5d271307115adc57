"""A snapshot's files, from manifests parsed by pyiceberg, and its access to our stores."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass

from pyiceberg.io import FileIO, InputFile, OutputFile
from pyiceberg.manifest import ManifestFile, read_manifest_list

from slackwater.core.errors import SinkUnreadable
from slackwater.sinks.iceberg.metadata import Metadata, Snapshot
from slackwater.storage.protocols import WriteStore


@dataclass(frozen=True, slots=True)
class TableFile:
    """``path`` is relative if below the table. ``deletes``: it deletes rows."""

    path: str
    size: int
    rows: int
    deletes: bool


@dataclass(frozen=True, slots=True)
class Difference:
    """Files that are in only one of two snapshots."""

    added: tuple[TableFile, ...]
    removed: tuple[TableFile, ...]

    @property
    def rows(self) -> int | None:
        replaced = self.removed or any(file.deletes for file in self.added)
        return None if replaced else sum(file.rows for file in self.added)


class Manifests:
    def __init__(self, files: FileIO, metadata: Metadata) -> None:
        self._io = files
        self._prefix = metadata.location.rstrip("/") + "/"

    def difference(self, one: Snapshot | None, other: Snapshot | None) -> Difference:
        ones, others = self._manifests(one), self._manifests(other)
        added = self._files({path: ones[path] for path in ones.keys() - others.keys()})
        removed = self._files({path: others[path] for path in others.keys() - ones.keys()})
        return Difference(
            tuple(added[path] for path in sorted(added.keys() - removed.keys())),
            tuple(removed[path] for path in sorted(removed.keys() - added.keys())),
        )

    def _manifests(self, snapshot: Snapshot | None) -> Mapping[str, ManifestFile]:
        if snapshot is None:
            return {}
        try:
            listed = read_manifest_list(self._io.new_input(snapshot.manifest_list))
            return {one.manifest_path: one for one in listed}
        except (OSError, ValueError, AssertionError) as error:
            raise _unreadable(snapshot.manifest_list, error) from error

    def _files(self, manifests: Mapping[str, ManifestFile]) -> dict[str, TableFile]:
        found: dict[str, TableFile] = {}
        for path, manifest in manifests.items():
            try:
                entries = manifest.fetch_manifest_entry(self._io)
            except (OSError, ValueError, AssertionError) as error:
                raise _unreadable(path, error) from error
            for file in (entry.data_file for entry in entries):
                name = file.file_path.removeprefix(self._prefix)
                found[name] = TableFile(name, file.file_size_in_bytes, file.record_count, int(file.content) != 0)
        return found


def _unreadable(path: str, error: Exception) -> SinkUnreadable:
    return SinkUnreadable(
        "iceberg-manifest",
        f"A manifest of the Iceberg table cannot be read: {error}",
        where=path,
        hint="restore the file from a backup; Spark cannot read this snapshot either",
    )


class StoreIO(FileIO):
    """Access to files by an open store, with the user's credentials.

    ``root`` is the metadata's table location, which a moved table keeps.
    """

    def __init__(self, store: WriteStore, root: str) -> None:
        super().__init__()
        self._store = store
        self._prefix = root.rstrip("/") + "/"

    def new_input(self, location: str) -> _Input:
        return _Input(location, self._store, location.removeprefix(self._prefix))

    def new_output(self, location: str) -> _Output:
        return _Output(location, self._store, location.removeprefix(self._prefix))

    def delete(self, location: str | InputFile | OutputFile) -> None:
        path = location if isinstance(location, str) else location.location
        self._store.delete(path.removeprefix(self._prefix))


class _Input(InputFile):
    def __init__(self, location: str, store: WriteStore, path: str) -> None:
        super().__init__(location)
        self._store, self._path = store, path

    def __len__(self) -> int:
        return self._store.size(self._path)

    def exists(self) -> bool:
        return self._store.exists(self._path)

    def open(self, seekable: bool = True) -> io.BytesIO:
        del seekable  # What it returns is.
        return io.BytesIO(self._store.read(self._path))


class _Output(OutputFile):
    def __init__(self, location: str, store: WriteStore, path: str) -> None:
        super().__init__(location)
        self._store, self._path = store, path

    def __len__(self) -> int:
        return self._store.size(self._path)

    def exists(self) -> bool:
        return self._store.exists(self._path)

    def to_input_file(self) -> _Input:
        return _Input(self.location, self._store, self._path)

    def create(self, overwrite: bool = False) -> io.BytesIO:
        del overwrite  # Each file is written under a name of its own.
        return _Upload(self._store, self._path)


class _Upload(io.BytesIO):
    def __init__(self, store: WriteStore, path: str) -> None:
        super().__init__()
        self._store, self._path = store, path

    def close(self) -> None:
        if not self.closed:
            self._store.write(self._path, self.getvalue())
        super().close()
