"""Creates the ledger's schema, and refuses other versions.

Must not happen: two processes creating it at once; half a schema.
"""

import sqlite3
from contextlib import closing
from functools import partial

from slackwater.core.commands import command
from slackwater.core.errors import DataError, NotFound
from slackwater.ledger.database import Connection, Database, cause_of
from slackwater.ledger.tables import INDEXES, TABLES, versions
from slackwater.storage.local import make_private_folders

SCHEMA_VERSION = "1"

_CREATION_LOCK = 0x51ACC
"""Key of PostgreSQL's advisory lock: arbitrary, but the same in every release."""


def ensure_schema(database: Database, *, create: bool) -> None:
    """Create a missing schema if ``create``. Raises ``NotFound`` (``ledger-missing``) or ``DataError``
    (``ledger-version``, ``ledger-unreadable``).
    """
    file = database.file
    try:
        if file and not file.path.exists():
            if not create:
                # SQLite would create the file just by opening it.
                raise _missing(database)
            make_private_folders(file.path.parent)
            file.create()
    except OSError as error:
        raise database.unreachable(str(error)) from error
    with database.read() as connection:
        others = connection.other_than_tables() if file else []
        if others:
            raise database.unreadable(f"views or triggers: {', '.join(others)}")
        found = _schema_version(connection)
    if found == SCHEMA_VERSION:
        return
    if found is not None:
        raise DataError(
            "ledger-version",
            "The ledger was made by a different version of Slackwater",
            where=database.place,
            expected=f"schema version {SCHEMA_VERSION}",
            found=found,
            hint="use the version of Slackwater that made the ledger",
        )
    if not create:
        raise _missing(database)
    _create(database)


def _missing(database: Database) -> NotFound:
    return NotFound(
        "ledger-missing",
        "There is no ledger",
        where=database.place,
        hint=f"run a pipeline first: {command('run', 'FILE')}, or give the home of a pipeline that has run with --home",
    )


def _create(database: Database) -> None:
    if database.file:
        database.require_writable()
        # The mode is kept in the file. SQLite does not wait for other openers here, whatever its busy timeout is.
        with closing(sqlite3.connect(database.file.path)) as driver:
            try:
                database.file.wait_for_lock(partial(driver.execute, "PRAGMA journal_mode = WAL"))
            except sqlite3.OperationalError as error:
                raise database.unreachable(cause_of(error)) from error
    with database.write() as connection:
        if not database.is_sqlite:
            connection.execute("SELECT pg_advisory_xact_lock(:key)", {"key": _CREATION_LOCK})
        # Read again under the lock: another process may have created the schema meanwhile.
        if _schema_version(connection) is None:
            for statement in (*(table.sql for table in TABLES), *INDEXES):
                connection.execute(connection.with_types(statement))
            connection.insert_absent(versions, {"version_num": SCHEMA_VERSION})


def _schema_version(connection: Connection) -> str | None:
    if not connection.has_table(versions.name):
        return None
    return next(iter(connection.column(versions, "version_num", "")), None)
