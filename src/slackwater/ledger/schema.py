"""Checks the schema version of a ledger, and creates or upgrades the schema where that is needed.

What may not happen: two processes migrating at once; half a migration.

A new version: append its statements to ``_VERSIONS`` and change ``tables`` to match. A released version is never
changed, and there is no way down: an older Slackwater refuses a newer ledger.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing

from slackwater.core.commands import command
from slackwater.core.errors import DataError, EnvironmentMissing, NotFound
from slackwater.ledger.connection import Connection
from slackwater.ledger.database import Database, cause_of
from slackwater.ledger.sqlite import SqliteFile, is_busy
from slackwater.ledger.tables import versions
from slackwater.storage.private import make_private_folders

_MIGRATION_LOCK = 0x51ACC
"""Key of PostgreSQL's advisory lock: arbitrary, but the same in every release."""
_GENERATION = "FOREIGN KEY(stream, generation) REFERENCES generations (stream, number)"

_FIRST_TABLES = (
    """CREATE TABLE streams (
        full_name VARCHAR NOT NULL, pipeline VARCHAR NOT NULL, name VARCHAR NOT NULL, sink JSON NOT NULL,
        output_mode VARCHAR NOT NULL, pipeline_file VARCHAR NOT NULL, current_generation INTEGER NOT NULL,
        CONSTRAINT pk_streams PRIMARY KEY (full_name))""",
    """CREATE TABLE generations (
        stream VARCHAR NOT NULL, number INTEGER NOT NULL, location VARCHAR NOT NULL, query_id VARCHAR, based_at BIGINT,
        parent INTEGER, source_cut JSON NOT NULL, layout JSON,
        CONSTRAINT pk_generations PRIMARY KEY (stream, number),
        CONSTRAINT fk_generations_streams FOREIGN KEY(stream) REFERENCES streams (full_name))""",
    f"""CREATE TABLE runs (
        id {{serial}} NOT NULL, stream VARCHAR NOT NULL, generation INTEGER NOT NULL, spark_version VARCHAR NOT NULL,
        started_ms BIGINT NOT NULL, ended_ms BIGINT, "end" VARCHAR, reason TEXT, stop_requested_ms BIGINT,
        CONSTRAINT pk_runs PRIMARY KEY (id), CONSTRAINT fk_runs_generations {_GENERATION})""",
    "CREATE INDEX ix_runs_stream_id ON runs (stream, id)",
    f"""CREATE TABLE batches (
        stream VARCHAR NOT NULL, generation INTEGER NOT NULL, batch_id BIGINT NOT NULL, timestamp_ms BIGINT NOT NULL,
        input_rows BIGINT NOT NULL, sources JSON NOT NULL, watermark_ms BIGINT, event_time_min_ms BIGINT,
        event_time_max_ms BIGINT, late_rows BIGINT NOT NULL, state_rows BIGINT NOT NULL, output_rows BIGINT,
        durations_ms JSON NOT NULL, CONSTRAINT pk_batches PRIMARY KEY (stream, generation, batch_id),
        CONSTRAINT fk_batches_generations {_GENERATION})""",
    f"""CREATE TABLE log_lines (
        stream VARCHAR NOT NULL, generation INTEGER NOT NULL, log VARCHAR NOT NULL, entry BIGINT NOT NULL,
        text {{bytes}} NOT NULL, CONSTRAINT pk_log_lines PRIMARY KEY (stream, generation, log, entry),
        CONSTRAINT fk_log_lines_generations {_GENERATION})""",
    """CREATE TABLE sink_marks (
        stream VARCHAR NOT NULL, seen_ms BIGINT NOT NULL, written BIGINT NOT NULL,
        CONSTRAINT pk_sink_marks PRIMARY KEY (stream, seen_ms),
        CONSTRAINT fk_sink_marks_streams FOREIGN KEY(stream) REFERENCES streams (full_name))""",
    """CREATE TABLE operations (
        id VARCHAR NOT NULL, stream VARCHAR NOT NULL, goal VARCHAR NOT NULL, status VARCHAR NOT NULL,
        started_ms BIGINT NOT NULL, ended_ms BIGINT, summary TEXT NOT NULL,
        CONSTRAINT pk_operations PRIMARY KEY (id),
        CONSTRAINT fk_operations_streams FOREIGN KEY(stream) REFERENCES streams (full_name))""",
    "CREATE INDEX ix_operations_stream_started_ms ON operations (stream, started_ms)",
    # No foreign key: a lease is taken before a new stream is registered.
    """CREATE TABLE leases (
        stream VARCHAR NOT NULL, fence BIGINT NOT NULL, host VARCHAR, pid BIGINT, pid_started BIGINT, jvm_pid BIGINT,
        jvm_started BIGINT, pid_space VARCHAR, purpose VARCHAR NOT NULL, acquired_ms BIGINT NOT NULL,
        heartbeat_ms BIGINT NOT NULL, CONSTRAINT pk_leases PRIMARY KEY (stream))""",
)

_VERSIONS: Mapping[str, tuple[str, ...]] = {
    "0001": _FIRST_TABLES,
    # The committed batch when a sink mark was read: the sink skips a batch that it has when it runs again.
    "0002": ("ALTER TABLE sink_marks ADD COLUMN committed BIGINT",),
    # What a run ran with and how it failed, the run of a batch, stream ids, and log lines that were replaced.
    "0003": (
        "ALTER TABLE streams ADD COLUMN id VARCHAR",
        "ALTER TABLE runs ADD COLUMN settings JSON",
        "ALTER TABLE runs ADD COLUMN code VARCHAR",
        "ALTER TABLE runs ADD COLUMN failure VARCHAR",
        "ALTER TABLE runs ADD COLUMN failure_code VARCHAR",
        "ALTER TABLE runs ADD COLUMN rows_digest VARCHAR",
        "ALTER TABLE batches ADD COLUMN run INTEGER",
        f"""CREATE TABLE replaced_lines (
            stream VARCHAR NOT NULL, generation INTEGER NOT NULL, log VARCHAR NOT NULL, entry BIGINT NOT NULL,
            seen_ms BIGINT NOT NULL, text {{bytes}} NOT NULL,
            CONSTRAINT pk_replaced_lines PRIMARY KEY (stream, generation, log, entry, seen_ms),
            CONSTRAINT fk_replaced_lines_generations {_GENERATION})""",
    ),
    # The first batch of a generation that was started at a position, and not after a batch of another generation.
    "0004": ("ALTER TABLE generations ADD COLUMN begins BIGINT",),
    # The programs that made the state of a generation; of each run its program and the changes that were accepted.
    "0005": (
        "ALTER TABLE generations ADD COLUMN programs JSON",
        "ALTER TABLE runs ADD COLUMN program VARCHAR",
        "ALTER TABLE runs ADD COLUMN accepted JSON",
    ),
    # What operations wrote into their folders, as it happened: the files there can be lost or edited.
    "0006": (
        """CREATE TABLE operation_files (
            operation VARCHAR NOT NULL, home VARCHAR NOT NULL, stream_id VARCHAR NOT NULL, plan TEXT NOT NULL,
            journal TEXT NOT NULL, CONSTRAINT pk_operation_files PRIMARY KEY (operation))""",
    ),
    "0007": ("ALTER TABLE batches ADD COLUMN state_bytes BIGINT",),
    # The interval of a run's trigger, by which its batches are too long.
    "0008": ("ALTER TABLE runs ADD COLUMN trigger_ms BIGINT",),
    # The options of the last start, for the commands that are printed.
    "0009": ("ALTER TABLE streams ADD COLUMN session JSON",),
}

_VERSION_TABLE = """CREATE TABLE IF NOT EXISTS slackwater_version (
    version_num VARCHAR(32) NOT NULL, CONSTRAINT slackwater_version_pkc PRIMARY KEY (version_num))"""

SCHEMA_VERSION = max(_VERSIONS)


def ensure_schema(database: Database, *, create: bool) -> None:
    """Upgrade the schema to ``SCHEMA_VERSION``; create a missing one only if ``create``.

    Raises ``NotFound`` (``ledger-missing``), ``DataError`` (``ledger-too-new``, ``ledger-unreadable``) or
    ``EnvironmentMissing`` (``ledger-outdated``: an older schema that this user may not upgrade).
    """
    if database.file:
        _ensure_file(database, database.file, create=create)
    with database.read() as connection:
        others = connection.other_than_tables() if database.file else []
        if others:
            raise database.unreadable(f"views or triggers: {', '.join(others)}")
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
    # ``upgrade`` reads the version again under this lock: another process may have migrated meanwhile.
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
            raise database.unreachable(cause_of(error)) from error


def _schema_version(connection: Connection) -> str | None:
    """The version of the schema, ``None`` where there is none."""
    if not connection.has_table(versions.name):
        return None
    return next(iter(connection.column(versions, "version_num", "")), None)


def upgrade(connection: Connection, to: str = SCHEMA_VERSION) -> None:
    """Bring the schema to a version, within the transaction that the connection is in."""
    found = _schema_version(connection)
    if found is None:
        connection.execute(_VERSION_TABLE)
    for version, statements in _VERSIONS.items():
        # Versions have four digits, so that they can be compared as strings.
        if (found or "") < version <= to:
            for statement in statements:
                connection.execute(statement.format(**connection.types))
    connection.delete(versions, "1 = 1", {})
    connection.insert_absent(versions, {"version_num": to})
