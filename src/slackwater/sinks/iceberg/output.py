"""The output of a recorded identity of kind ``iceberg``: a table in a directory, or in a catalog."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from functools import cached_property

from slackwater.core.errors import SinkUnreadable
from slackwater.core.sink import CatalogueEntry, Delivery, Owner, Traits
from slackwater.sinks.common.contract import Output
from slackwater.sinks.common.owner import MARK, check_claim, claim, parse_owner, read_owner
from slackwater.sinks.common.place import Place
from slackwater.sinks.common.silent import SilentOutput
from slackwater.sinks.iceberg.catalog_settings import CatalogSettings, parts_of, settings_of
from slackwater.sinks.iceberg.metadata import MAIN, Change, Metadata
from slackwater.sinks.iceberg.swapping import Branches, moved
from slackwater.sinks.iceberg.table_output import ATTEMPTS, TableOutput
from slackwater.sinks.iceberg.versions import FOLDER, DirectoryTable, Table, require_library
from slackwater.storage.open import open_write_store
from slackwater.storage.protocols import WriteStore

OWNER = "slackwater.owner"
"""The table property with the stream that owns a table of a catalog, as JSON."""
_DELIVERY = Delivery(
    "exactly-once", "a batch is staged and published with its number in one commit, and a number it has is skipped"
)
ICEBERG_TRAITS = Traits(
    _DELIVERY,
    tells_written=True,
    skips_known_batches=True,
    cuts=True,
    swaps=True,
    reads_known_batches=True,
    combines=True,
)
CATALOG_TRAITS = Traits(
    _DELIVERY,
    tells_written=False,
    skips_known_batches=True,
    cuts=False,
    swaps=False,
    reads_known_batches=True,
    combines=True,
)


ENTRIES = (
    CatalogueEntry("iceberg", "iceberg(path)", ICEBERG_TRAITS, ("append", "complete"), rank=30),
    CatalogueEntry("iceberg", "iceberg(path, keys=...)", ICEBERG_TRAITS, ("append", "update"), rank=31),
    CatalogueEntry("iceberg", 'iceberg("catalog.db.table")', ICEBERG_TRAITS, ("append", "complete"), rank=32),
    CatalogueEntry("iceberg", 'iceberg("catalog.db.table", keys=...)', ICEBERG_TRAITS, ("append", "update"), rank=33),
    CatalogueEntry("iceberg", 'iceberg("opaque.db.table")', CATALOG_TRAITS, ("append", "complete"), rank=34),
    CatalogueEntry("iceberg", 'iceberg("opaque.db.table", keys=...)', CATALOG_TRAITS, ("append", "update"), rank=35),
)


def open_iceberg_output(identity: Mapping[str, str]) -> Output:
    """The output of a recorded identity of kind ``iceberg``. Raises SinkUnreadable if the identity is incomplete."""
    if identity.get("path"):
        return IcebergOutput(identity["path"], identity.get("branch", MAIN))
    if identity.get("table"):
        return _named(identity["table"], identity.get("branch", MAIN))
    raise SinkUnreadable(
        "sink-identity",
        "The recorded identity of the sink has neither a path nor a table",
        expected='{"kind": "iceberg", "path": ...} or {"kind": "iceberg", "table": ...}',
        found=str(dict(identity)),
    )


def _named(table: str, branch: str) -> Output:
    catalog, *identifier = parts_of(table)
    # A name without a namespace is that of a table in Spark's default one.
    settings = settings_of(catalog) if len(identifier) > 1 else None
    if settings is None:
        return OpaqueCatalogOutput(table)
    if settings.kind == "hadoop":
        return IcebergOutput(settings.folder_of(tuple(identifier)), branch, table)
    return CatalogOutput(table, settings, branch)


class OpaqueCatalogOutput(SilentOutput):
    """A table of a catalog that only Spark can open, by the name that Spark knows it by."""

    def __init__(self, table: str) -> None:
        super().__init__("iceberg", CATALOG_TRAITS, f"iceberg table {table}")
        self._table = table

    def reader_path(self) -> str:
        return self._table


class CatalogOutput(TableOutput):
    """A table of a catalog that pyiceberg opens. Its owner is a property of the table."""

    traits = ICEBERG_TRAITS

    def __init__(self, table: str, settings: CatalogSettings, branch: str = MAIN) -> None:
        super().__init__(branch)
        self._settings = settings
        self._name = table

    def _open(self) -> Table:
        require_library()
        from slackwater.sinks.iceberg.catalog import CatalogTable  # noqa: PLC0415 - needs pyiceberg

        return CatalogTable(self._settings, parts_of(self._name)[1:], self._where)

    @property
    def _where(self) -> str:
        return f"iceberg table {self._name}"

    @property
    def _reader_path(self) -> str:
        return self._name

    def owner(self) -> Owner | None:
        newest = self._newest()
        return None if newest is None else self._owner_in(newest)

    def _owner_in(self, metadata: Metadata) -> Owner | None:
        known = metadata.properties.get(OWNER)
        return None if known is None else parse_owner(known, self._where, f"the table property {OWNER}")

    def claim(self, owner: Owner) -> None:
        """Of a table that does not exist nothing is recorded: the sink creates it before a stream claims it."""
        for _ in range(ATTEMPTS):
            newest = self._newest()
            known = None if newest is None else self._owner_in(newest)
            if newest is None or known == owner:
                return
            if known is not None:
                check_claim(known, owner, self.location)
            with suppress(FileExistsError):
                self._table.commit(newest, Change(properties={OWNER: json.dumps(asdict(owner))}))
                return
        raise moved(self.location)

    def name_of(self, uri: str) -> str | None:
        del uri  # Streams read it by its snapshots.
        return None

    def staged(self, operation: str) -> CatalogOutput:
        return CatalogOutput(self._name, self._settings, Branches(operation).staged)


class IcebergOutput(TableOutput):
    """A table in a directory; the store is not opened before it is needed.

    ``path`` is what Spark is given, unless the table has a ``name`` in a Hadoop catalog.
    """

    traits = ICEBERG_TRAITS

    def __init__(self, path: str, branch: str = MAIN, name: str = "") -> None:
        super().__init__(branch)
        self._path = path
        self._name = name

    @cached_property
    def _place(self) -> Place:
        return Place(self._path)

    @cached_property
    def _store(self) -> WriteStore:
        return open_write_store(self._path)

    def _open(self) -> Table:
        return DirectoryTable(self._store)

    @property
    def _where(self) -> str:
        return self._place.location

    @property
    def _reader_path(self) -> str:
        return self._name or self._path

    def owner(self) -> Owner | None:
        return read_owner(self._store)

    def _owner_in(self, metadata: Metadata) -> Owner | None:
        del metadata  # A file of the directory has it.
        return self.owner()

    def claim(self, owner: Owner) -> None:
        claim(self._store, owner)

    def name_of(self, uri: str) -> str | None:
        name = self._place.name_of(uri)
        return None if name is None or name.split("/")[0] in {FOLDER, MARK} else name

    def staged(self, operation: str) -> IcebergOutput:
        return IcebergOutput(self._path, Branches(operation).staged, self._name)

    def filled_by(self, query_id: str, /) -> QueryTable:
        """The table as Iceberg's own streaming sink fills it."""
        return QueryTable(self._path, query_id)


class QueryTable(IcebergOutput):
    """A table in a directory that Iceberg's own streaming sink fills, with the batches of one query.

    This sink skips a batch where the newest snapshot of the query, among the ancestors of the current one, has its
    number or a later one: a cut makes an older snapshot the current one. It asks the main branch whichever branch it
    writes to, so that it cannot fill one aside (docs/decisions/0602).
    """

    traits = replace(ICEBERG_TRAITS, swaps=False)

    def __init__(self, path: str, query_id: str) -> None:
        super().__init__(path)
        self._query = query_id

    def claim(self, owner: Owner) -> None:
        """Nothing: the table is that of the program."""

    def _stream(self, metadata: Metadata) -> str:
        del metadata  # No property of the table names the query.
        return self._query
