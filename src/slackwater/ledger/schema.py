"""Is the schema in the database the one this Slackwater knows? If it is older, or absent and wanted, build it.

What may not happen: importing Alembic where none is needed; two processes migrating at once; half a migration.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from sqlalchemy import Connection, column, select, table, text

from slackwater.errors import DataError, NotFound
from slackwater.ledger.database import BUSY_TIMEOUT_S, Database
from slackwater.ledger.tables import SCHEMA_VERSION, VERSION_TABLE

_MIGRATION_LOCK = 0x51ACC
"""Key of PostgreSQL's advisory lock: any number, the same in every release."""


def ensure_schema(database: Database, *, create: bool) -> None:
    """Bring the schema to ``SCHEMA_VERSION``; an absent one only if ``create``.

    Raises ``NotFound`` (``ledger-missing``) or ``DataError`` (``ledger-too-new``, ``ledger-unreadable``).
    """
    if database.is_sqlite:
        _ensure_folder(database, create=create)
    with database.read() as connection:
        found = _schema_version(connection)
    if found == SCHEMA_VERSION:
        return
    if found is None and not create:
        raise _missing(database)
    _refuse_unknown(database, found)
    _migrate(database)


def _ensure_folder(database: Database, *, create: bool) -> None:
    path = Path(database.place)
    if not create and not path.exists():
        # SQLite would create the file just by looking.
        raise _missing(database)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise database.unreachable(str(error)) from error


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
        "The ledger was written by a newer Slackwater" if newer else "The ledger's schema version is not one of ours",
        where=database.place,
        expected=f"schema version {SCHEMA_VERSION}" + (" or older" if newer else ""),
        found=found,
        hint="pip install --upgrade slackwater" if newer else None,
    )


def _migrate(database: Database) -> None:
    from slackwater.ledger.migrations import upgrade  # noqa: PLC0415 - imports Alembic, which most starts do not need

    if database.is_sqlite:
        _use_write_ahead_log(database)
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


def _use_write_ahead_log(database: Database) -> None:
    # The mode is kept in the file. SQLite does not wait for other openers here, whatever its busy timeout says.
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    with closing(sqlite3.connect(database.place)) as connection:
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise database.unreachable(str(error)) from error
                time.sleep(0.02)
            else:
                return


def _pragma(connection: Connection, setting: str) -> None:
    # Through the driver: a statement through SQLAlchemy would begin a transaction, in which these do nothing.
    driver = connection.connection.dbapi_connection
    if driver is not None:
        driver.cursor().execute(f"PRAGMA {setting}")
