"""Checks the schema version of a ledger, and creates or upgrades the schema where that is needed.

What may not happen: importing Alembic where no migration is needed; two processes migrating at once; half a migration.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing

from sqlalchemy import Connection, column, select, table, text

from slackwater.errors import DataError, EnvironmentMissing, NotFound
from slackwater.ledger.database import Database
from slackwater.ledger.sqlite import SqliteFile, is_busy
from slackwater.ledger.tables import SCHEMA_VERSION, VERSION_TABLE
from slackwater.storage.private import make_private_folders

_MIGRATION_LOCK = 0x51ACC
"""Key of PostgreSQL's advisory lock: arbitrary, but the same in every release."""


def ensure_schema(database: Database, *, create: bool) -> None:
    """Upgrade the schema to ``SCHEMA_VERSION``; create a missing one only if ``create``.

    Raises ``NotFound`` (``ledger-missing``), ``DataError`` (``ledger-too-new``, ``ledger-unreadable``) or
    ``EnvironmentMissing`` (``ledger-outdated``: an older schema that this user may not upgrade).
    """
    if database.file:
        _ensure_file(database, database.file, create=create)
    with database.read() as connection:
        found = _schema_version(connection)
    if found == SCHEMA_VERSION:
        return
    if found is None and not create:
        raise _missing(database)
    _refuse_unknown(database, found)
    if database.file and database.file.read_only:
        raise _outdated(database, database.file, found)
    _migrate(database)


def _ensure_file(database: Database, file: SqliteFile, *, create: bool) -> None:
    try:
        if file.path.exists():
            return
        if not create:
            # SQLite would create the file just by opening it.
            raise _missing(database)
        make_private_folders(file.path.parent)
        file.create()
    except OSError as error:
        raise database.unreachable(str(error)) from error


def _outdated(database: Database, file: SqliteFile, found: str | None) -> EnvironmentMissing:
    return EnvironmentMissing(
        "ledger-outdated",
        "The ledger must be upgraded by a user with write access before it can be read",
        where=database.place,
        expected=f"schema version {SCHEMA_VERSION}",
        found=found or "no schema",
        hint=f"run as {file.owner()}: slackwater status",
    )


def _missing(database: Database) -> NotFound:
    return NotFound(
        "ledger-missing",
        "There is no ledger",
        where=database.place,
        hint="run a pipeline first: slackwater run FILE, or point --home at the home of one that has run",
    )


def _schema_version(connection: Connection) -> str | None:
    if not connection.dialect.has_table(connection, VERSION_TABLE):
        return None
    version = connection.scalar(select(column("version_num")).select_from(table(VERSION_TABLE)))
    return str(version) if version is not None else None


def _refuse_unknown(database: Database, found: str | None) -> None:
    if found is None or (found.isdecimal() and int(found) < int(SCHEMA_VERSION)):
        return
    newer = found.isdecimal()
    raise DataError(
        "ledger-too-new" if newer else "ledger-unreadable",
        "The ledger was written by a newer Slackwater" if newer else "The ledger's schema version is unknown",
        where=database.place,
        expected=f"schema version {SCHEMA_VERSION}" + (" or older" if newer else ""),
        found=found,
        hint="pip install --upgrade slackwater" if newer else None,
    )


def _migrate(database: Database) -> None:
    from slackwater.ledger.migrations import upgrade  # noqa: PLC0415 - imports Alembic, which most starts do not need

    if database.file:
        _use_write_ahead_log(database, database.file)
    with database.translated(), database.engine.connect() as connection:
        if database.is_sqlite:
            # Batch mode drops and renames tables; with foreign keys on that would delete what refers to them.
            _pragma(connection, "foreign_keys = OFF")
        try:
            with connection.execution_options(slackwater_writes=True).begin():
                if not database.is_sqlite:
                    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
                upgrade(connection)
        finally:
            if database.is_sqlite:
                _pragma(connection, "foreign_keys = ON")


def _use_write_ahead_log(database: Database, file: SqliteFile) -> None:
    # The mode is kept in the file. SQLite does not wait for other openers here, whatever its busy timeout is.
    with closing(sqlite3.connect(file.path)) as connection:

        def switch() -> None:
            connection.execute("PRAGMA journal_mode = WAL")

        try:
            file.wait_for_lock(switch, is_busy)
        except sqlite3.OperationalError as error:
            raise database.unreachable(str(error)) from error


def _pragma(connection: Connection, setting: str) -> None:
    # Through the driver: a statement through SQLAlchemy would start a transaction, in which these have no effect.
    driver = connection.connection.dbapi_connection
    if driver is not None:
        driver.cursor().execute(f"PRAGMA {setting}")
