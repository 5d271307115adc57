"""Outputs of kind ``iceberg``: a table in a directory or a catalog."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any

from slackwater.core.checkpoint import NONE_YET
from slackwater.core.sink import CatalogueEntry, Identity, Owner, Swap
from slackwater.sinks.common.changes import record, started, unsupported
from slackwater.sinks.common.contract import LogEntries, OpaqueOutput, Output, SwapPart
from slackwater.sinks.common.directory import OWNER_FILE, DirectoryOutput, check_claim, marked_traits, parse_owner
from slackwater.sinks.common.problem import malformed_identity
from slackwater.sinks.iceberg.changes import (
    branch_state,
    check_kept,
    check_own,
    conflict,
    replaced_branch,
    replaced_mark,
    staged_branch,
)
from slackwater.sinks.iceberg.metadata import (
    FOLDER,
    HINT,
    MAIN,
    DirectoryTable,
    IcebergTable,
    Metadata,
    MetadataChange,
    TableMark,
    require_library,
    version_path,
)
from slackwater.sinks.iceberg.names import CatalogSettings, parts_of, settings_of
from slackwater.sinks.iceberg.table_output import IcebergTableOutput
from slackwater.storage.open import open_write_store
from slackwater.storage.protocols import WriteStore

OWNER = "slackwater.owner"
"""The table property with the stream that owns a table of a catalog, as JSON."""
ICEBERG_TRAITS = marked_traits(
    "a batch is staged and published with its number in one commit, and a number it has is skipped",
    cuts=True,
    swaps=True,
)
CATALOG_TRAITS = replace(ICEBERG_TRAITS, reports_last_batch=False, cuts=False, swaps=False)


ENTRIES = (
    CatalogueEntry("iceberg", "iceberg(path)", ICEBERG_TRAITS, ("append", "complete"), rank=30),
    CatalogueEntry("iceberg", "iceberg(path, keys=...)", ICEBERG_TRAITS, ("append", "update"), rank=31),
    CatalogueEntry("iceberg", 'iceberg("catalog.db.table")', ICEBERG_TRAITS, ("append", "complete"), rank=32),
    CatalogueEntry("iceberg", 'iceberg("catalog.db.table", keys=...)', ICEBERG_TRAITS, ("append", "update"), rank=33),
    CatalogueEntry("iceberg", 'iceberg("opaque.db.table")', CATALOG_TRAITS, ("append", "complete"), rank=34),
    CatalogueEntry("iceberg", 'iceberg("opaque.db.table", keys=...)', CATALOG_TRAITS, ("append", "update"), rank=35),
)
_OF_FILES = ("schemas", "current-schema-id", "partition-specs", "default-spec-id", "format-version")
"""Parts of metadata that must be equal if a table is to read another table's files."""
_SEQUENCE = "last-sequence-number"
_STARTED = "slackwater.started-at"
"""The property of the second line with the table's sequence number at its start."""
_VERSION_MAX = 2
"""In later format versions a snapshot numbers its rows."""


def open_iceberg_output(identity: Identity) -> Output:
    if identity.get("path"):
        return IcebergOutput(identity["path"], identity.get("branch", MAIN))
    table, branch = identity.get("table"), identity.get("branch", MAIN)
    if not table:
        expected = '{"kind": "iceberg", "path": ...} or {"kind": "iceberg", "table": ...}'
        raise malformed_identity(identity, "has neither a path nor a table", expected)
    catalog, *identifier = parts_of(table)
    # A name without a namespace is that of a table in Spark's default one.
    settings = settings_of(catalog) if len(identifier) > 1 else None
    if settings is None:
        return OpaqueOutput("iceberg", CATALOG_TRAITS, f"iceberg table {table}", table)
    if settings.kind == "hadoop":
        return IcebergOutput(settings.folder_of(tuple(identifier)), branch, table)
    return CatalogOutput(table, settings, branch)


class CatalogOutput(IcebergTableOutput):
    """A catalog's table, opened by pyiceberg. The owner is a table property."""

    traits = ICEBERG_TRAITS

    def __init__(self, table: str, settings: CatalogSettings, branch: str = MAIN) -> None:
        super().__init__(branch, f"iceberg table {table}", table)
        self._settings = settings

    @cached_property
    def _table(self) -> IcebergTable:
        require_library()
        from slackwater.sinks.iceberg.commits import IcebergCatalogTable  # noqa: PLC0415 - needs pyiceberg

        return IcebergCatalogTable(self._settings, parts_of(self._reader_path)[1:], self._where)

    def owner(self) -> Owner | None:
        newest = self._newest()
        return None if newest is None else self._owner_in(newest)

    def _owner_in(self, metadata: Metadata) -> Owner | None:
        known = metadata.properties.get(OWNER)
        return None if known is None else parse_owner(known, self._where, f"the table property {OWNER}")

    def claim(self, owner: Owner) -> None:
        """Claim an existing table only: the sink creates a missing table first."""

        def claimed(newest: Metadata) -> MetadataChange | None:
            known = self._owner_in(newest)
            if known is not None:
                check_claim(known, owner, self.location)
            return None if known == owner else MetadataChange(properties={OWNER: json.dumps(asdict(owner))})

        # The commit is conditional: an owner that was recorded meanwhile is found in the next attempt.
        self._follow(claimed)

    def release(self, stream_id: str) -> None:
        def released(newest: Metadata) -> MetadataChange | None:
            known = self._owner_in(newest)
            if known is None or known.stream_id != stream_id or self._table.lack(newest):
                return None
            return MetadataChange(properties={OWNER: None})

        self._follow(released)

    def staged(self, operation: str) -> CatalogOutput:
        return CatalogOutput(self._reader_path, self._settings, staged_branch(operation))


class IcebergOutput(IcebergTableOutput, DirectoryOutput):
    """A table in a directory, opened on demand.

    ``path`` is for Spark unless the table has a ``name`` in a Hadoop catalog.
    """

    traits = ICEBERG_TRAITS

    def __init__(self, path: str, branch: str = MAIN, name: str = "") -> None:
        DirectoryOutput.__init__(self, path)
        IcebergTableOutput.__init__(self, branch, self._place.location, name or path)
        self._name = name

    @cached_property
    def _table(self) -> IcebergTable:
        return DirectoryTable(self._store)

    def _owner_in(self, _metadata: Metadata) -> Owner | None:
        """The owner in a file of the directory."""
        return self.owner()

    def relative_path(self, uri: str) -> str | None:
        name = self._place.relative_path(uri)
        return None if name is None or name.split("/")[0] in {FOLDER, OWNER_FILE} else name

    def staged(self, operation: str) -> IcebergOutput:
        return IcebergOutput(self._path, staged_branch(operation), self._name)

    def filled_by(self, query_id: str, /) -> IcebergQueryTable:
        return IcebergQueryTable(self._path, query_id)


class IcebergQueryTable(IcebergOutput):
    """A directory's table filled by Iceberg's own streaming sink, with a query's batches.

    The sink skips a batch if the query's newest snapshot among the current snapshot's ancestors is not older, whichever
    branch it writes to. So staging uses a second line of metadata below the table, not a branch.
    """

    is_filled_by_spark = True

    def __init__(self, path: str, query_id: str) -> None:
        super().__init__(path)
        self._query = query_id

    def claim(self, owner: Owner) -> None: ...

    def staged(self, operation: str) -> IcebergQueryTable:
        return IcebergQueryTable(self.staged_path(operation), self._query)

    def staged_path(self, operation: str, /) -> str:
        return f"{self._path.rstrip('/')}/{_second_folder(operation)}"

    def stage(self, operation: str, after: int, _recorded: LogEntries) -> None:
        metadata = self._for_swap()
        self._check_start(after)
        version = int(metadata.fields["format-version"])
        if version > _VERSION_MAX:
            raise unsupported(metadata.location, f"a table of format version {_VERSION_MAX} or lower", f"{version}")
        if self._phase(metadata, operation) is not None:
            return
        # The sink fills the second line as a table without snapshots, so it finds only its epochs there. A version of
        # the real table then takes over the snapshots, with files in place: their numbers follow the real table's,
        # which must be unchanged.
        fields: dict[str, Any] = dict(metadata.fields)
        for name in ("statistics", "partition-statistics", "snapshots", "snapshot-log", "metadata-log"):
            fields[name] = []
        fields |= {
            "location": f"{metadata.location.rstrip('/')}/{_second_folder(operation)}",
            "table-uuid": str(uuid.uuid4()),
            "current-snapshot-id": -1,
            "refs": {},
            "properties": {**metadata.properties, _STARTED: str(fields.get(_SEQUENCE, 0))},
        }
        store = self._folder(operation)
        store.write(version_path(1), json.dumps(fields).encode())
        store.write(f"{FOLDER}/{HINT}", b"1")

    def swap_of(self, operation: str, stream_id: str, after: int = NONE_YET) -> Swap:
        self._check_start(after)
        return super().swap_of(operation, stream_id, after)

    def swap(self, swap: Swap, backup: WriteStore) -> None:
        metadata = self._for_swap()
        self._check_swap(swap, backup, metadata)
        line = self._beside(swap.operation).newest()
        if line is not None and self._phase(metadata, swap.operation) == "staged":
            head = line.current
            # Written again, as the staged table may have other snapshots since a swap that was undone.
            record(backup, self.location, swap, NONE_YET if head is None else head)
            replaced = TableMark(self._query, 0, self._written(metadata), metadata.current)
            branch = replaced_branch(swap.operation)
            moved_to = {MAIN: head, branch: replaced.snapshot}
            taken = _snapshots_unknown_to(metadata, line)
            self._commit(metadata, MetadataChange(moved_to, {branch: replaced}, snapshots=taken))

    def swap_back(self, swap: Swap, backup: WriteStore) -> None:
        known = started(backup, self.location, swap)
        metadata = self._for_swap()
        if known is not None and self._check_swap_back(swap, known.version, metadata):
            # The other snapshots stay until ``expire_snapshots``.
            branch, replaced = replaced_branch(swap.operation), replaced_mark(metadata, swap.operation)
            self._commit(metadata, MetadataChange({MAIN: replaced.snapshot, branch: None}, {branch: None}))

    def discard(self, operation: str, part: SwapPart) -> None:
        if part == "replaced":
            super().discard(operation, part)
            return
        metadata = self._newest()
        # A removal that was interrupted has left files without a version: the phase is unknown then.
        if metadata is not None and self._phase(metadata, operation) == "replaced":
            return
        store = self._folder(operation)
        store.delete(f"{FOLDER}/{HINT}")
        beside = DirectoryTable(store)
        while (newest := beside.newest_path()) is not None:
            store.delete(newest)
        folder = store.location.rstrip("/").rpartition("/")[2]
        # The files stay once the table has taken over snapshots.
        if metadata is None or not any(f"/{folder}/" in one.manifest_list for one in metadata.snapshots.values()):
            store.delete_tree()

    def _check_swap(self, swap: Swap, backup: WriteStore, metadata: Metadata) -> None:
        super()._check_swap(swap, backup, metadata)
        line = self._beside(swap.operation).newest()
        if line is None or self._phase(metadata, swap.operation) == "replaced":
            return
        for name in _OF_FILES:
            if _without_empty(metadata.fields.get(name)) != _without_empty(line.fields.get(name)):
                raise unsupported(line.location, f"{name} of the table", f"other {name}")
        now, then = str(metadata.fields.get(_SEQUENCE, 0)), line.properties.get(_STARTED)
        # After a swap that was undone the table has the snapshots already.
        if now != then and _snapshots_unknown_to(metadata, line):
            raise unsupported(metadata.location, f"{_SEQUENCE} {then}, as when the staged table was created", now)

    def _check_swap_back(self, swap: Swap, swapped: int, metadata: Metadata) -> bool:
        if self._phase(metadata, swap.operation) != "replaced":
            if self._written(metadata) != swap.replaced:
                raise conflict(self.location, f"the branch {replaced_branch(swap.operation)}", "no such branch")
            return False
        older = self._table.older(metadata)
        check_own(metadata, older, self._query, None if swapped == NONE_YET else swapped)
        check_kept(self.location, metadata, replaced_mark(metadata, swap.operation).snapshot)
        return True

    def _check_start(self, after: int) -> None:
        if after > NONE_YET:
            refused = unsupported(self.location, "all batches from 0 on", f"those from {after + 1} on")
            refused.hint = "name the first batch: --from earliest"
            raise refused

    def _phase(self, metadata: Metadata, operation: str) -> SwapPart | None:
        if branch_state(metadata, operation) == "replaced":
            return "replaced"
        return None if self._beside(operation).newest() is None else "staged"

    def _folder(self, operation: str) -> WriteStore:
        return open_write_store(self.staged_path(operation))

    def _beside(self, operation: str) -> DirectoryTable:
        return DirectoryTable(self._folder(operation))

    def _stream(self, _metadata: Metadata) -> str:
        return self._query


def _second_folder(operation: str) -> str:
    """The folder of the second line; not hidden, as it stays with files that were swapped in."""
    return f"slackwater-{operation}"


def _without_empty(value: Any) -> Any:
    """The JSON without empty fields, which pyiceberg writes and Iceberg omits."""
    if isinstance(value, Mapping):
        bare = {key: _without_empty(each) for key, each in value.items()}
        return {key: each for key, each in bare.items() if each not in (None, [], {}) or key == "fields"}
    return [_without_empty(each) for each in value] if isinstance(value, list) else value


def _snapshots_unknown_to(metadata: Metadata, beside: Metadata) -> tuple[Mapping[str, Any], ...]:
    found = beside.fields.get("snapshots") or ()
    return tuple(one for one in found if int(one["snapshot-id"]) not in metadata.snapshots)
