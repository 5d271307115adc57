"""The files of a snapshot, from its manifests; the ``pyiceberg`` library parses these."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from slackwater.errors import EnvironmentMissing, SinkUnreadable
from slackwater.sinks.iceberg.metadata import Metadata, Snapshot
from slackwater.sinks.swapping import unsupported
from slackwater.storage.protocols import ReadStore

if TYPE_CHECKING:
    from pyiceberg.manifest import ManifestFile


@dataclass(frozen=True, slots=True)
class TableFile:
    """A file of a table; ``path`` is relative to the table where it is below it. ``deletes``: it deletes rows."""

    path: str
    size: int
    rows: int
    deletes: bool


@dataclass(frozen=True, slots=True)
class Difference:
    """The files that one snapshot has and another has not, and the other way round."""

    added: tuple[TableFile, ...]
    removed: tuple[TableFile, ...]

    @property
    def rows(self) -> int | None:
        """How many rows the one has more, ``None`` where rows were replaced or deleted."""
        replaced = self.removed or any(file.deletes for file in self.added)
        return None if replaced else sum(file.rows for file in self.added)


def require_library() -> None:
    """Raises EnvironmentMissing unless ``pyiceberg`` is installed."""
    if find_spec("pyiceberg") is None:
        raise EnvironmentMissing(
            "extra-missing",
            "Reading the manifests of an Iceberg table needs the pyiceberg library",
            hint="pip install 'slackwater[iceberg]'",
        )


def empty_list(metadata: Metadata, snapshot: int, sequence_number: int) -> bytes:
    """A manifest list without manifests: that of a snapshot without files."""
    require_library()
    from pyiceberg.avro.file import AvroOutputFile  # noqa: PLC0415 - heavy; only a swap writes one
    from pyiceberg.manifest import MANIFEST_LIST_FILE_SCHEMAS  # noqa: PLC0415 - as above

    version = metadata.fields["format-version"]
    if version not in MANIFEST_LIST_FILE_SCHEMAS:
        raise unsupported(metadata.location, "a version of Iceberg's format that pyiceberg can write", str(version))
    names = {"snapshot-id": snapshot, "parent-snapshot-id": "null", "format-version": version}
    if version > 1:
        names["sequence-number"] = sequence_number
    output: Any = _Output(io.BytesIO())
    described = {name: str(value) for name, value in names.items()}
    schema = MANIFEST_LIST_FILE_SCHEMAS[version]
    with AvroOutputFile[Any](output, schema, "manifest_file", metadata=described):
        # The header is all there is, and it is written by now.
        data: bytes = output.buffer.getvalue()
    return data


class Manifests:
    """Reads manifests of one table."""

    def __init__(self, store: ReadStore, metadata: Metadata) -> None:
        require_library()
        self._store = store
        self._prefix = metadata.location.rstrip("/") + "/"

    def difference(self, one: Snapshot | None, other: Snapshot | None) -> Difference:
        """What ``one`` has and ``other`` has not; manifests that both have are not read."""
        ones, others = self._manifests(one), self._manifests(other)
        added = self._files({path: ones[path] for path in ones.keys() - others.keys()})
        removed = self._files({path: others[path] for path in others.keys() - ones.keys()})
        return Difference(
            tuple(added[path] for path in sorted(added.keys() - removed.keys())),
            tuple(removed[path] for path in sorted(removed.keys() - added.keys())),
        )

    def relative(self, path: str) -> str:
        """The path relative to the table; one elsewhere stays as it is."""
        return path.removeprefix(self._prefix)

    def _manifests(self, snapshot: Snapshot | None) -> Mapping[str, ManifestFile]:
        from pyiceberg.manifest import read_manifest_list  # noqa: PLC0415 - heavy; only a cut and a check read manifests

        if snapshot is None:
            return {}
        source: Any = self.input(snapshot.manifest_list)
        try:
            return {one.manifest_path: one for one in read_manifest_list(source)}
        except (OSError, ValueError, AssertionError) as error:
            raise self._unreadable(snapshot.manifest_list, error) from error

    def input(self, path: str) -> _Input:
        """A file of the table, by its path in the metadata."""
        return _Input(self._store, self.relative(path))

    def _files(self, manifests: Mapping[str, ManifestFile]) -> dict[str, TableFile]:
        found: dict[str, TableFile] = {}
        inputs: Any = _Inputs(self)
        for path, manifest in manifests.items():
            try:
                entries = manifest.fetch_manifest_entry(inputs)
            except (OSError, ValueError, AssertionError) as error:
                raise self._unreadable(path, error) from error
            for file in (entry.data_file for entry in entries):
                name = self.relative(file.file_path)
                found[name] = TableFile(name, file.file_size_in_bytes, file.record_count, int(file.content) != 0)
        return found

    def _unreadable(self, path: str, error: Exception) -> SinkUnreadable:
        return SinkUnreadable(
            "iceberg-manifest",
            f"A manifest of the Iceberg table cannot be read: {error}",
            where=path,
            hint="restore the file from a backup; Spark cannot read this snapshot either",
        )


@dataclass(frozen=True, slots=True)
class _Input:
    """A file as pyiceberg opens it, read by our own store: that one is open already, with the user's credentials."""

    store: ReadStore
    path: str

    def open(self) -> io.BytesIO:
        return io.BytesIO(self.store.read(self.path))


@dataclass(frozen=True, slots=True)
class _Output:
    """A file as pyiceberg creates it."""

    buffer: io.BytesIO

    def create(self, overwrite: bool = False) -> io.BytesIO:
        del overwrite
        return self.buffer


@dataclass(frozen=True, slots=True)
class _Inputs:
    """Finds them by the paths in manifest lists."""

    manifests: Manifests

    def new_input(self, location: str) -> _Input:
        return self.manifests.input(location)
