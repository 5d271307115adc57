"""An Iceberg table's metadata: its snapshots, their batches, and the versions of a table in a directory.

Format: Apache Iceberg's table specification, section "Table Metadata Fields". The newest batch is from the current
snapshot's ancestors: a rollback removes batches and changes no property. In a directory, as in
``HadoopTableOperations``, each version is ``metadata/vN.metadata.json``, renamed into place and never replaced; the
highest counts. ``version-hint.text`` only saves a listing (section "File System Tables").
"""

from __future__ import annotations

import gzip
import json
import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

from slackwater.core.errors import EnvironmentMissing, FormatError, Refused, SinkUnreadable
from slackwater.sinks.common.changes import check_writable
from slackwater.storage.protocols import LEFTOVER, WriteStore

if TYPE_CHECKING:
    from pyiceberg.io import FileIO


PROPERTY = "slackwater.written"
"""The table property with the newest batch as of a snapshot, as JSON: it outlives the snapshots, which expire."""
MAIN = "main"
"""The branch that readers of the table see. Other branches have their own property: see ``property_of``."""
MARKER = "wap.id"
"""The key in a snapshot's summary that names the batch. Iceberg sets it for every kind of write, MERGE included."""
_PREFIX = "slackwater"
_QUERY, _EPOCH = "spark.sql.streaming.queryId", "spark.sql.streaming.epochId"
"""The keys in a snapshot's summary under which Iceberg's own streaming sink records the query and its batch."""


@dataclass(frozen=True, slots=True)
class TableMark:
    """``batch`` is ``stream``'s newest as of ``snapshot`` (``None``: before the first).

    ``epoch`` is the newest run's fence number; runs with lower numbers may not write.
    """

    stream: str
    epoch: int
    batch: int
    snapshot: int | None

    def render(self) -> str:
        return json.dumps(asdict(self))


@dataclass(frozen=True, slots=True)
class TableSnapshot:
    id: int
    parent: int | None
    manifest_list: str
    summary: Mapping[str, str]

    def batch_of(self, stream: str) -> int | None:
        """The batch of a snapshot, ``None`` for other writers.

        For Iceberg's own streaming sink ``stream`` is the query id.
        """
        epoch = self.summary.get(_EPOCH, "")
        if self.summary.get(_QUERY) == stream and epoch.isdecimal():
            return int(epoch)
        prefix, _, rest = self.summary.get(MARKER, "").partition(":")
        parts = rest.rsplit(":", 3)
        if prefix != _PREFIX or len(parts) != 4 or parts[0] != stream or not parts[2].isdecimal():  # noqa: PLR2004 - as in marker
            return None
        return int(parts[2])

    @property
    def changes_rows(self) -> bool:
        """Return whether the snapshot changes rows; compaction only replaces files."""
        return self.summary.get("operation") != "replace"


@dataclass(frozen=True, slots=True)
class Metadata:
    """A metadata version as seen on ``branch``; ``current`` is its newest snapshot.

    ``marks`` are by property; ``log`` has older files, newest first. ``file`` is relative to the table, or as the
    catalog names it.
    """

    location: str
    current: int | None
    snapshots: Mapping[int, TableSnapshot]
    branches: Mapping[str, int]
    marks: Mapping[str, TableMark]
    properties: Mapping[str, str]
    log: tuple[str, ...]
    fields: Mapping[str, Any]
    file: str = ""
    branch: str = MAIN

    @property
    def mark(self) -> TableMark | None:
        return self.marks.get(property_of(self.branch))

    def on(self, branch: str) -> Metadata:
        return self if branch == self.branch else replace(self, branch=branch, current=self.branches.get(branch))

    def staged(self, marker: str) -> TableSnapshot | None:
        return next((one for one in self.snapshots.values() if one.summary.get(MARKER) == marker), None)


@dataclass(frozen=True, slots=True)
class MetadataChange:
    """Each branch's newest snapshot (``None``: none) and mark.

    A non-main branch without a snapshot does not exist; mark ``None`` removes it. ``empty`` is the id of a new empty
    snapshot, ``snapshots`` are others as JSON. ``properties`` are set, or removed by ``None``.
    """

    branches: Mapping[str, int | None] = field(default_factory=dict)
    marks: Mapping[str, TableMark | None] = field(default_factory=dict)
    empty: int | None = None
    properties: Mapping[str, str | None] = field(default_factory=dict)
    snapshots: tuple[Mapping[str, Any], ...] = ()


def change_of(marks: Mapping[str, TableMark | None]) -> MetadataChange:
    return MetadataChange({branch: None if mark is None else mark.snapshot for branch, mark in marks.items()}, marks)


def property_of(branch: str) -> str:
    return PROPERTY if branch == MAIN else f"{PROPERTY}.{branch}"


def marker(stream: str, epoch: int, batch: int, attempt: str) -> str:
    return f"{_PREFIX}:{stream}:{epoch}:{batch}:{attempt}"


def parse(data: str | bytes, file: str = "") -> Metadata:
    """Parse ``file``'s JSON, which may be compressed. Raises FormatError (``iceberg-metadata``)."""
    try:
        fields = json.loads(gzip.decompress(data) if isinstance(data, bytes) and ".gz" in file else data)
    except (ValueError, RecursionError, OSError, EOFError) as error:
        raise _malformed(file, error) from error
    return metadata_of(fields, file)


def metadata_of(fields: Mapping[str, Any], file: str) -> Metadata:
    """Raises FormatError (``iceberg-metadata``)."""
    try:
        # Iceberg's Java library writes -1 for a table without snapshots up to version 2 of the format.
        current = _snapshot_id(fields.get("current-snapshot-id"))
        snapshots = [
            TableSnapshot(
                int(one["snapshot-id"]),
                _snapshot_id(one.get("parent-snapshot-id")),
                str(one.get("manifest-list", "")),
                dict(one.get("summary") or {}),
            )
            for one in fields.get("snapshots") or ()
        ]
        properties = dict(fields.get("properties") or {})
        marks = dict[str, TableMark]()
        for key, value in properties.items():
            if key == PROPERTY or key.startswith(f"{PROPERTY}."):
                mark = json.loads(value)
                at = None if mark["snapshot"] is None else int(mark["snapshot"])
                marks[key] = TableMark(str(mark["stream"]), int(mark["epoch"]), int(mark["batch"]), at)
        branches = {name: int(one["snapshot-id"]) for name, one in (fields.get("refs") or {}).items()}
        return Metadata(
            str(fields["location"]),
            current,
            {one.id: one for one in snapshots},
            # Writers that know no branches record the current snapshot alone.
            branches if current is None else {MAIN: current, **branches},
            marks,
            properties,
            tuple(str(entry["metadata-file"]) for entry in reversed(fields.get("metadata-log") or ())),
            fields,
            file,
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _malformed(file, error) from error


def _malformed(file: str, error: Exception) -> FormatError:
    return FormatError(
        "iceberg-metadata",
        "The metadata of an Iceberg table is malformed",
        where=file or None,
        expected="table metadata of the Iceberg specification",
        found=repr(error),
    )


def _snapshot_id(value: Any) -> int | None:
    return None if value in {None, -1} else int(value)


def lineage(newest: Metadata, older: Iterator[Metadata]) -> Iterator[tuple[int | None, TableSnapshot | None]]:
    """The current snapshot and its ancestors, ended by ``(None, None)``.

    A missing snapshot is ``None``, and the last.
    """
    known, current = dict(newest.snapshots), newest.current
    while current is not None:
        while current not in known and (past := next(older, None)) is not None:
            known = {**past.snapshots, **known}
        found = known.get(current)
        yield current, found
        if found is None:
            return
        current = found.parent
    yield None, None


def epochs(newest: Metadata, older: Iterator[Metadata], query: str) -> dict[str, int]:
    """Batches of Iceberg's own sink by query id. For ``query`` also a cut's record: it may have left no batch."""
    found: dict[str, int] = {}
    mark = newest.mark if newest.mark is not None and newest.mark.stream == query else None
    for identifier, snapshot in lineage(newest, older):
        if mark is not None and mark.snapshot == identifier:
            found.setdefault(query, mark.batch)
        summary = snapshot.summary if snapshot is not None else {}
        writer, epoch = summary.get(_QUERY), summary.get(_EPOCH, "")
        if writer is not None and epoch.isdecimal():
            found.setdefault(writer, int(epoch))
    return found


def written(newest: Metadata, older: Iterator[Metadata], stream: str) -> int:
    """The newest batch, -1 for none. Raises SinkUnreadable (``iceberg-history``) if the snapshots have expired."""
    mark = newest.mark if newest.mark is not None and newest.mark.stream == stream else None
    for identifier, snapshot in lineage(newest, older):
        # The id is enough: the snapshot itself may have expired.
        if mark is not None and mark.snapshot == identifier:
            return mark.batch
        if identifier is None:
            break
        if snapshot is None:
            raise SinkUnreadable(
                "iceberg-history",
                "The newest batch in the Iceberg table is unknown: the snapshots that show it have expired",
                where=newest.location,
                expected=f"snapshot {identifier}, or the table property {PROPERTY} as of a newer one",
                found="neither",
                hint="find out whether the table was rolled back (its history in Spark: SELECT * FROM TABLE.history), "
                "and restore its metadata from a backup",
            )
        batch = snapshot.batch_of(stream)
        if batch is not None:
            return batch
    return -1


FOLDER = "metadata"
HINT = "version-hint.text"
_VERSION = re.compile(r"v(\d+)((?:\.gz)?\.metadata\.json(?:\.gz)?)")


def version_path(number: int, ending: str = ".metadata.json") -> str:
    return f"{FOLDER}/v{number}{ending}"


@dataclass(frozen=True, slots=True)
class IcebergFile:
    """``path`` is relative if below the table. ``deletes``: it deletes rows."""

    path: str
    size: int
    rows: int
    deletes: bool


Difference: TypeAlias = tuple[tuple[IcebergFile, ...], tuple[IcebergFile, ...]]
"""The files that are only in the first, and only in the second snapshot."""


class IcebergTable(ABC):
    """Keeps a table's newest version; only one writer can add the next."""

    @abstractmethod
    def newest(self) -> Metadata | None:
        """The newest version, ``None`` without a table. Raises FormatError, OSError or SinkUnreadable."""

    @abstractmethod
    def older(self, newest: Metadata) -> Iterator[Metadata]:
        """The older versions, newest first, as far as kept. Raises FormatError."""

    @abstractmethod
    def commit(self, base: Metadata, change: MetadataChange) -> None:
        """Add a version. Raises FileExistsError if a different writer was faster."""

    @abstractmethod
    def lack(self, base: Metadata) -> tuple[str, str] | None:
        """The reason why no commit is possible, or ``None``."""

    @abstractmethod
    def check_writable(self) -> None:
        """Raises Refused unless this user may commit, as far as known."""

    def difference(self, newest: Metadata, one: TableSnapshot | None, other: TableSnapshot | None) -> Difference:
        """Raises EnvironmentMissing without pyiceberg."""
        found: Difference = _commits().difference(self.files(newest), newest, one, other)
        return found

    @abstractmethod
    def files(self, newest: Metadata) -> FileIO:
        """Reads the table's files."""

    @abstractmethod
    def size(self, newest: Metadata, name: str) -> int:
        """The size in bytes; ``name`` is relative to the table. Raises OSError."""


class DirectoryTable(IcebergTable):
    def __init__(self, store: WriteStore) -> None:
        self._store = store

    def newest(self) -> Metadata | None:
        path = self.newest_path()
        return None if path is None else self._read(path)

    def newest_path(self) -> str | None:
        names = (_VERSION.fullmatch(entry.name) for entry in self._store.list(FOLDER))
        found = ((int(match[1]), version_path(int(match[1]), match[2])) for match in names if match)
        return max(found, default=(0, None))[1]

    def older(self, newest: Metadata) -> Iterator[Metadata]:
        for file in newest.log:
            try:
                yield self._read(f"{FOLDER}/{file.rpartition('/')[2]}")
            except FileNotFoundError:
                continue  # write.metadata.delete-after-commit.enabled deletes them.

    def commit(self, base: Metadata, change: MetadataChange) -> None:
        self.add(base.file, _commits().following(base, change, self._store))

    def add(self, base: str, fields: dict[str, Any]) -> None:
        """Add the version after file ``base``. Raises FileExistsError if a different writer was faster."""
        match = _VERSION.fullmatch(base.rpartition("/")[2])
        if match is None:
            raise ValueError(base)
        number = int(match[1]) + 1
        following = version_path(number, match[2])
        data = json.dumps(fields).encode()
        temporary = f"{FOLDER}/.{uuid.uuid4()}{LEFTOVER}"
        self._store.write(temporary, gzip.compress(data) if ".gz" in following else data)
        # Before the rename: a kill between the two leaves no hint, which readers do without, in place of an old one.
        self._drop_hint()
        try:
            self._store.rename(temporary, following)
        except FileExistsError:
            self._store.delete(temporary)
            raise
        self._store.write(f"{FOLDER}/{HINT}", str(number).encode())
        if self.newest_path() != following:
            # Another writer has committed meanwhile: its hint was perhaps replaced just now.
            self._drop_hint()

    def _drop_hint(self) -> None:
        """Remove the hint: Iceberg refuses commits while it is not the newest version, and lists without it."""
        # Hadoop's ChecksumFileSystem refuses to read a hint next to the checksum file of an older one.
        self._store.delete(f"{FOLDER}/.{HINT}.crc")
        self._store.delete(f"{FOLDER}/{HINT}")

    def _read(self, path: str) -> Metadata:
        return parse(self._store.read(path), path)

    def lack(self, base: Metadata) -> tuple[str, str] | None:
        if not self._store.traits.atomic_rename:
            return "a store with a rename in one step", "one without"
        try:
            _commits().known_by_library(base)
        except Refused as error:
            return error.expected or "", error.found or ""
        return None

    def check_writable(self) -> None:
        check_writable(self._store, FOLDER)

    def files(self, newest: Metadata) -> FileIO:
        files: FileIO = _commits().StoreIO(self._store, newest.location)
        return files

    def size(self, newest: Metadata, name: str) -> int:
        del newest
        return self._store.size(name)


def _commits() -> Any:
    require_library()
    from slackwater.sinks.iceberg import commits  # noqa: PLC0415 - needs pyiceberg

    return commits


def require_library() -> None:
    if find_spec("pyiceberg") is None:
        raise EnvironmentMissing(
            "extra-missing",
            "Reading the manifests of an Iceberg table and committing to it need the pyiceberg library",
            hint="pip install pyiceberg",
        )
