"""Checks the schema version of a ledger, and creates or upgrades the schema where that is needed.

What may not happen: two processes migrating at once; half a migration.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing

from slackwater.core.commands import command
from slackwater.core.errors import DataError, EnvironmentMissing, NotFound
from slackwater.ledger.database import Database
from slackwater.ledger.migrations import SCHEMA_VERSION, schema_version, upgrade
from slackwater.ledger.sqlite import SqliteFile, is_busy
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
        found = schema_version(connection)
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
        hint=f"run as {file.owner()}: {command('status')}",
    )


def _missing(database: Database) -> NotFound:
    return NotFound(
        "ledger-missing",
        "There is no ledger",
        where=database.place,
        hint=f"run a pipeline first: {command('run', 'FILE')}, or point --home at the home of one that has run",
    )


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
    if database.file:
        _use_write_ahead_log(database, database.file)
    with database.write() as connection:
        if not database.is_sqlite:
            connection.execute("SELECT pg_advisory_xact_lock(:key)", {"key": _MIGRATION_LOCK})
        upgrade(connection)


def _use_write_ahead_log(database: Database, file: SqliteFile) -> None:
    # The mode is kept in the file. SQLite does not wait for other openers here, whatever its busy timeout is.
    with closing(sqlite3.connect(file.path)) as connection:

        def switch() -> None:
            connection.execute("PRAGMA journal_mode = WAL")

        try:
            file.wait_for_lock(switch, is_busy)
        except sqlite3.OperationalError as error:
            raise database.unreachable(str(error)) from error
