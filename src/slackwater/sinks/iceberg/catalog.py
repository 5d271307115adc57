"""A catalog's table, through pyiceberg."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import parse_qsl, unquote

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.sql import IcebergTables
from pyiceberg.exceptions import CommitFailedException, NoSuchNamespaceError, NoSuchTableError, ValidationError
from pyiceberg.io import FileIO
from sqlalchemy import URL, Engine, inspect
from sqlalchemy.exc import OperationalError, ProgrammingError, SQLAlchemyError

from slackwater.core.errors import EnvironmentMissing, OutcomeUnknown, SinkUnreadable
from slackwater.core.masking import mask
from slackwater.sinks.common.changes import check_folders_writable, read_only
from slackwater.sinks.common.problem import CATALOGS, secret_of
from slackwater.sinks.iceberg.commits import Manifests, requirements_of, updates_of
from slackwater.sinks.iceberg.metadata import IcebergTable, Metadata, MetadataChange, metadata_of, parse
from slackwater.sinks.iceberg.names import JDBC_URL, CatalogSettings
from slackwater.storage.open import local_path_of

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
                if _is_empty(catalog):
                    return None
                raise
        self._files = table.io
        fields = table.metadata.model_dump(mode="json", by_alias=True, exclude_none=True)
        return metadata_of(fields, table.metadata_location)

    def older(self, newest: Metadata) -> Iterator[Metadata]:
        files = self._io(newest)
        for file in newest.log:
            with self._reading():
                try:
                    with files.new_input(file).open() as stream:
                        data = stream.read()
                except FileNotFoundError:
                    continue  # write.metadata.delete-after-commit.enabled deletes them.
            yield parse(data, file)

    def commit(self, base: Metadata, change: MetadataChange) -> None:
        updates = updates_of(base, change, self._io(base))
        with self._opened() as catalog:
            with self._reading():
                table = catalog.load_table(self._identifier)
            try:
                # Not by pyiceberg's Transaction, which tries again after the commit of another writer.
                catalog.commit_table(table, requirements_of(base, change), updates)
            except CommitFailedException as error:
                raise FileExistsError(mask(str(error))) from error
            except PermissionError as error:
                raise read_only(base.location, str(error)) from error
            except (SQLAlchemyError, OSError) as error:
                raise OutcomeUnknown(
                    "iceberg-commit-unknown",
                    f"Whether the commit to the Iceberg table was made is unknown: {_reason(error)}",
                    where=self._where,
                    hint="run the command again: it reads from the table what was done",
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

    def manifests(self, newest: Metadata) -> Manifests:
        return Manifests(self._io(newest), newest)

    def _io(self, newest: Metadata) -> FileIO:
        if self._files is None:
            raise ValueError(newest.file)
        return self._files

    def size(self, newest: Metadata, name: str) -> int:
        return len(self._io(newest).new_input(f"{newest.location.rstrip('/')}/{name}"))

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


def _is_empty(catalog: Catalog) -> bool:
    """Return whether the database has no catalog tables: Spark creates them on first use."""
    engine = getattr(catalog, "engine", None)
    return isinstance(engine, Engine) and not inspect(engine).has_table(IcebergTables.__tablename__)


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
