"""Iceberg by pyiceberg: manifests, commits (updates, requirements, files), and tables of catalogs.

Imported lazily: pyiceberg is heavy, and ``status`` of a directory's table does not need it.
"""

from __future__ import annotations

import io
import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote

from pydantic import ValidationError as InvalidFields
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.sql import IcebergTables
from pyiceberg.exceptions import CommitFailedException, NoSuchNamespaceError, NoSuchTableError, ValidationError
from pyiceberg.io import FileIO, InputFile, OutputFile
from pyiceberg.manifest import ManifestFile, read_manifest_list, write_manifest_list
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    AssertRefSnapshotId,
    AssertTableUUID,
    RemovePropertiesUpdate,
    RemoveSnapshotRefUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    update_table_metadata,
)
from sqlalchemy import URL, Engine, inspect
from sqlalchemy.exc import OperationalError, ProgrammingError, SQLAlchemyError

from slackwater.core.errors import EnvironmentMissing, OutcomeUnknown, SinkUnreadable
from slackwater.core.masking import mask
from slackwater.sinks.common.changes import check_folders_writable, read_only, unsupported
from slackwater.sinks.common.problem import CATALOGS, secret_of
from slackwater.sinks.iceberg.metadata import (
    MAIN,
    Difference,
    IcebergFile,
    IcebergTable,
    Metadata,
    MetadataChange,
    TableSnapshot,
    metadata_of,
    parse,
    property_of,
)
from slackwater.sinks.iceberg.names import JDBC_URL, CatalogSettings
from slackwater.storage.open import local_path_of
from slackwater.storage.protocols import WriteStore

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.update import TableUpdate


def difference(files: FileIO, metadata: Metadata, one: TableSnapshot | None, other: TableSnapshot | None) -> Difference:
    ones, others = _manifests(files, one), _manifests(files, other)
    added = _files(files, metadata, [ones[path] for path in ones.keys() - others.keys()])
    removed = _files(files, metadata, [others[path] for path in others.keys() - ones.keys()])
    return (
        tuple(added[path] for path in sorted(added.keys() - removed.keys())),
        tuple(removed[path] for path in sorted(removed.keys() - added.keys())),
    )


def _manifests(files: FileIO, snapshot: TableSnapshot | None) -> dict[str, ManifestFile]:
    if snapshot is None:
        return {}
    with _reading(snapshot.manifest_list):
        return {one.manifest_path: one for one in read_manifest_list(files.new_input(snapshot.manifest_list))}


def _files(files: FileIO, metadata: Metadata, manifests: Iterable[ManifestFile]) -> dict[str, IcebergFile]:
    found, prefix = dict[str, IcebergFile](), metadata.location.rstrip("/") + "/"
    for manifest in manifests:
        with _reading(manifest.manifest_path):
            entries = manifest.fetch_manifest_entry(files)
        for file in (entry.data_file for entry in entries):
            name = file.file_path.removeprefix(prefix)
            found[name] = IcebergFile(name, file.file_size_in_bytes, file.record_count, int(file.content) != 0)
    return found


@contextmanager
def _reading(path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, AssertionError) as error:
        raise SinkUnreadable(
            "iceberg-manifest",
            f"A manifest of the Iceberg table cannot be read: {error}",
            where=path,
            hint="restore the file from a backup; Spark cannot read this snapshot either",
        ) from error


class StoreIO(FileIO):
    """Access to files by an open store, with the user's credentials.

    ``root`` is the metadata's table location, which a moved table keeps.
    """

    def __init__(self, store: WriteStore, root: str) -> None:
        super().__init__()
        self._store = store
        self._prefix = root.rstrip("/") + "/"

    def new_input(self, location: str) -> _File:
        return _File(location, self._store, location.removeprefix(self._prefix))

    new_output = new_input

    def delete(self, location: str | InputFile | OutputFile) -> None:
        path = location if isinstance(location, str) else location.location
        self._store.delete(path.removeprefix(self._prefix))


class _File(InputFile, OutputFile):
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

    def to_input_file(self) -> _File:
        return self

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


_NEWEST = 3
"""The format version whose manifest lists pyiceberg cannot write; an empty list is the same in both versions."""
_TOTALS = ("records", "data-files", "delete-files", "position-deletes", "equality-deletes", "files-size")


@dataclass(frozen=True, slots=True)
class AssertProperties:
    """Requires unchanged properties. Marks change without a snapshot, so only this detects it.

    A server that compares, such as REST, could not check it.
    """

    properties: Mapping[str, str]

    def validate(self, base_metadata: TableMetadata | None) -> None:
        """Raises CommitFailedException if a different writer changed a property."""
        if base_metadata is None or dict(base_metadata.properties) != dict(self.properties):
            raise CommitFailedException("Requirement failed: the properties of the table have changed")


def updates_of(base: Metadata, change: MetadataChange, io: FileIO) -> tuple[TableUpdate, ...]:
    """pyiceberg's updates. Writes an empty snapshot's manifest list now."""
    marks = {property_of(branch): None if mark is None else mark.render() for branch, mark in change.marks.items()}
    properties = {**marks, **change.properties}
    removed = [name for name, value in properties.items() if value is None]
    updates: list[TableUpdate] = []
    if change.empty is not None:
        version = int(base.fields["format-version"])
        number = int(base.fields.get("last-sequence-number", 0)) + 1 if version > 1 else None
        path = f"{base.location.rstrip('/')}/metadata/snap-{change.empty}-1-slackwater.avro"
        as_version: Any = min(version, _NEWEST - 1)
        with write_manifest_list(as_version, io.new_output(path), change.empty, None, number, "null"):
            pass
        empty = Snapshot(
            snapshot_id=change.empty,
            sequence_number=number,
            manifest_list=path,
            summary=Summary(Operation.APPEND, **{f"total-{name}": "0" for name in _TOTALS}),
            schema_id=base.fields.get("current-schema-id", 0),
            first_row_id=base.fields.get("next-row-id"),
            added_rows=0 if "next-row-id" in base.fields else None,
        )
        updates.append(AddSnapshotUpdate(snapshot=empty))
    updates += [AddSnapshotUpdate(snapshot=Snapshot.model_validate(one)) for one in change.snapshots]
    known = base.fields.get("refs") or {}
    for branch, snapshot in change.branches.items():
        if snapshot is not None:
            fields = {**known.get(branch, {}), "ref-name": branch, "type": "branch", "snapshot-id": snapshot}
            updates.append(SetSnapshotRefUpdate(**fields))
        elif branch in base.branches:
            updates.append(RemoveSnapshotRefUpdate(ref_name=branch))
    kept = {name: value for name, value in properties.items() if value is not None}
    updates.append(SetPropertiesUpdate(updates=kept))
    if removed:
        updates.append(RemovePropertiesUpdate(removals=removed))
    return tuple(updates)


def known_by_library(base: Metadata) -> TableMetadata:
    """The metadata in pyiceberg. Raises Refused if it cannot be parsed, as with ``variant`` columns."""
    try:
        return TableMetadataUtil.parse_obj(dict(base.fields))
    except (InvalidFields, ValidationError) as error:
        found = error.errors()[0]["msg"] if isinstance(error, InvalidFields) else str(error)
        raise unsupported(base.location, "a table whose metadata pyiceberg can parse", found) from error


def following(base: Metadata, change: MetadataChange, store: WriteStore) -> dict[str, Any]:
    known = known_by_library(base)
    updates = updates_of(base, change, StoreIO(store, base.location))
    after = update_table_metadata(known, updates, metadata_location=f"{base.location.rstrip('/')}/{base.file}")
    # pyiceberg drops fields that its model does not have, so that they are taken from ``base``.
    names = {field.alias or name for name, field in type(known).model_fields.items()}
    kept = {key: value for key, value in base.fields.items() if key not in names}
    # Not ``model_dump_json``, which refuses version 3 of the format.
    fields = {**kept, **after.model_dump(mode="json", by_alias=True, exclude_none=True)}
    if change.snapshots:
        # A snapshot that is taken over could precede the table's history, and Iceberg would not read the table.
        now_ms = max(time.time_ns() // 1_000_000, int(base.fields.get("last-updated-ms", 0)))
        fields["last-updated-ms"] = now_ms
        log = fields.get("snapshot-log") or []
        if len(log) > len(base.fields.get("snapshot-log") or ()):
            log[-1]["timestamp-ms"] = now_ms
    if after.current_snapshot_id is None:
        # As Iceberg's own library writes a table without snapshots.
        fields["snapshot-log"] = []
        if after.format_version < _NEWEST:
            fields["current-snapshot-id"] = -1
    return fields


# It warns in each call of tables that Iceberg's library creates unless jdbc.schema-version is set.
logging.getLogger("pyiceberg.catalog.sql").setLevel(logging.ERROR)

CONNECT_TIMEOUT_S = "10"
_OF_LIBPQ = frozenset({"sslmode", "sslrootcert", "sslcert", "sslkey"})
"""Parameters of a JDBC url with the same names in libpq."""
_OF_SPARK = ("type", "catalog-impl", "io-impl", "uri", "warehouse", "cache", "jdbc.", "default-namespace")
_RENAMED = {"client.region": "s3.region"}
_UNWRITTEN = 3
"""The version of the format whose metadata pyiceberg cannot write."""


def properties_of(settings: CatalogSettings) -> dict[str, str]:
    """pyiceberg's properties of Spark's JDBC catalog. Raises StreamFailed (``sink-password-missing``).

    Names: pyiceberg's "Configuration", sections "Catalogs" and "FileIO".
    """
    given = settings.properties.items()
    values = {key: secret_of(f"{CATALOGS}{settings.name}.{key}", value) for key, value in given}
    passed = {_RENAMED.get(key, key): value for key, value in values.items() if not key.startswith(_OF_SPARK)}
    # Its tables are Spark's to create.
    return {**passed, "type": "sql", "uri": _address(values), "init_catalog_tables": "false"}


class IcebergCatalogTable(IcebergTable):
    """A catalog's table. ``identifier`` has namespaces first; ``where`` is for errors.

    The catalog is opened per call: no connection stays open while Spark works.
    """

    def __init__(self, settings: CatalogSettings, identifier: tuple[str, ...], where: str) -> None:
        self._settings = settings
        self._identifier = identifier
        self._where = where
        self._files: FileIO | None = None

    def newest(self) -> Metadata | None:
        file = self._settings.database_file
        if file is not None and not Path(file).exists():
            return None
        with self._reading(), self._opened() as catalog:
            try:
                table = catalog.load_table(self._identifier)
            except (NoSuchTableError, NoSuchNamespaceError):
                return None
            except (OperationalError, ProgrammingError):
                # Without the catalog's tables there is none of ours: Spark creates them on first use.
                engine = getattr(catalog, "engine", None)
                if isinstance(engine, Engine) and not inspect(engine).has_table(IcebergTables.__tablename__):
                    return None
                raise
        self._files = table.io
        fields = table.metadata.model_dump(mode="json", by_alias=True, exclude_none=True)
        return metadata_of(fields, table.metadata_location)

    def older(self, newest: Metadata) -> Iterator[Metadata]:
        files = self.files(newest)
        for file in newest.log:
            with self._reading():
                try:
                    with files.new_input(file).open() as stream:
                        data = stream.read()
                except FileNotFoundError:
                    continue  # write.metadata.delete-after-commit.enabled deletes them.
            yield parse(data, file)

    def commit(self, base: Metadata, change: MetadataChange) -> None:
        updates = updates_of(base, change, self.files(base))
        # pyiceberg refuses requirements about other branches while a table has no snapshots (``AssertRefSnapshotId``).
        branches = sorted({MAIN, *change.branches} if base.snapshots else {MAIN})
        requirements: tuple[Any, ...] = (
            AssertTableUUID(uuid=base.fields["table-uuid"]),
            *(AssertRefSnapshotId(ref=branch, snapshot_id=base.branches.get(branch)) for branch in branches),
            AssertProperties(base.properties),
        )
        with self._opened() as catalog:
            with self._reading():
                table = catalog.load_table(self._identifier)
            try:
                # Not by pyiceberg's Transaction, which tries again after the commit of another writer.
                catalog.commit_table(table, requirements, updates)
            except CommitFailedException as error:
                raise FileExistsError(mask(str(error))) from error
            except PermissionError as error:
                raise read_only(base.location, str(error)) from error
            except (SQLAlchemyError, OSError) as error:
                raise OutcomeUnknown(
                    "iceberg-commit-unknown",
                    f"It is unknown if the commit to the Iceberg table succeeded: {_reason(error)}",
                    where=self._where,
                    hint="run the command again: it checks the table for the commit",
                ) from error

    def lack(self, base: Metadata) -> tuple[str, str] | None:
        version = int(base.fields["format-version"])
        return ("format version 1 or 2, which pyiceberg writes", str(version)) if version >= _UNWRITTEN else None

    def check_writable(self) -> None:
        """Check local tables only; remote permissions show at the commit."""
        newest = self.newest()
        local = local_path_of(newest.location) if newest is not None else None
        if local is not None:
            check_folders_writable(Path(local, "metadata"))

    def files(self, newest: Metadata) -> FileIO:
        if self._files is None:
            raise ValueError(newest.file)
        return self._files

    def size(self, newest: Metadata, name: str) -> int:
        return len(self.files(newest).new_input(f"{newest.location.rstrip('/')}/{name}"))

    @contextmanager
    def _opened(self) -> Iterator[Catalog]:
        properties = properties_of(self._settings)
        try:
            catalog = load_catalog(self._settings.name, **properties)
        except ModuleNotFoundError as error:
            raise EnvironmentMissing(
                "extra-missing",
                f"The driver of catalog {self._settings.name} is missing",
                where=self._where,
                hint="pip install 'psycopg[binary]' adbc-driver-postgresql",
            ) from error
        with closing(catalog):
            yield catalog

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (SQLAlchemyError, OSError, ValueError, ValidationError) as error:
            raise SinkUnreadable(
                "iceberg-catalog-unreadable",
                f"The Iceberg table cannot be read from its catalog: {_reason(error)}",
                where=self._where,
                hint=f"check that the catalog and the table's files can be reached with the settings of "
                f"spark.sql.catalog.{self._settings.name} under [spark] in slackwater.toml",
            ) from error


def _reason(error: Exception) -> str:
    """The driver's first line; SQLAlchemy's has the statement."""
    text = str(getattr(error, "orig", None) or error)
    return mask((text.splitlines() or [type(error).__name__])[0])


def _address(values: Mapping[str, str]) -> str:
    match = JDBC_URL.fullmatch(values["uri"])
    if match is None:
        raise ValueError(values["uri"])
    if match["file"]:
        return URL.create("sqlite", database=match["file"]).render_as_string()
    given = dict(parse_qsl(match["query"] or ""))
    query: dict[str, str | tuple[str, ...]] = {key: value for key, value in given.items() if key in _OF_LIBPQ}
    if "currentSchema" in given:
        query["options"] = f"-csearch_path={given['currentSchema']}"
    query["connect_timeout"] = CONNECT_TIMEOUT_S
    query["host"] = tuple(host if ":" in host else f"{host}:5432" for host in match["hosts"].split(","))
    url = URL.create(
        "postgresql+psycopg",
        values.get("jdbc.user", given.get("user")),
        values.get("jdbc.password", given.get("password")),
        database=unquote(match["database"]),
        query=query,
    )
    return url.render_as_string(hide_password=False)
