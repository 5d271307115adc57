"""Creates the ledger's schema, and refuses other versions.

Must not happen: two processes creating it at once; half a schema. ``tables`` must match; a test compares them.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing

from slackwater.core.commands import command
from slackwater.core.errors import DataError, NotFound
from slackwater.ledger.database import Connection, Database, cause_of
from slackwater.ledger.sqlite import SqliteFile, is_busy
from slackwater.ledger.tables import versions
from slackwater.storage.local import make_private_folders

SCHEMA_VERSION = "1"

_CREATION_LOCK = 0x51ACC
"""Key of PostgreSQL's advisory lock: arbitrary, but the same in every release."""
_GENERATION = "FOREIGN KEY(stream, generation) REFERENCES generations (stream, number)"

_SCHEMA = (
    """CREATE TABLE slackwater_version (
        version_num VARCHAR(32) NOT NULL, CONSTRAINT slackwater_version_pkc PRIMARY KEY (version_num))""",
    """CREATE TABLE streams (
        full_name VARCHAR NOT NULL, pipeline VARCHAR NOT NULL, name VARCHAR NOT NULL, sink JSON NOT NULL,
        output_mode VARCHAR NOT NULL, pipeline_file VARCHAR NOT NULL, current_generation INTEGER NOT NULL,
        id VARCHAR, session JSON, CONSTRAINT pk_streams PRIMARY KEY (full_name))""",
    """CREATE TABLE generations (
        stream VARCHAR NOT NULL, number INTEGER NOT NULL, location VARCHAR NOT NULL, query_id VARCHAR, based_at BIGINT,
        parent INTEGER, source_cut JSON NOT NULL, layout JSON, begins BIGINT, programs JSON,
        CONSTRAINT pk_generations PRIMARY KEY (stream, number),
        CONSTRAINT fk_generations_streams FOREIGN KEY(stream) REFERENCES streams (full_name))""",
    f"""CREATE TABLE runs (
        id {{serial}} NOT NULL, stream VARCHAR NOT NULL, generation INTEGER NOT NULL, spark_version VARCHAR NOT NULL,
        started_ms BIGINT NOT NULL, ended_ms BIGINT, "end" VARCHAR, reason TEXT, stop_requested_ms BIGINT,
        settings JSON, code VARCHAR, failure VARCHAR, failure_code VARCHAR, rows_digest VARCHAR, program VARCHAR,
        accepted JSON, trigger_ms BIGINT,
        CONSTRAINT pk_runs PRIMARY KEY (id), CONSTRAINT fk_runs_generations {_GENERATION})""",
    "CREATE INDEX ix_runs_stream_id ON runs (stream, id)",
    f"""CREATE TABLE batches (
        stream VARCHAR NOT NULL, generation INTEGER NOT NULL, batch_id BIGINT NOT NULL, timestamp_ms BIGINT NOT NULL,
        input_rows BIGINT NOT NULL, sources JSON NOT NULL, watermark_ms BIGINT, event_time_min_ms BIGINT,
        event_time_max_ms BIGINT, late_rows BIGINT NOT NULL, state_rows BIGINT NOT NULL, output_rows BIGINT,
        durations_ms JSON NOT NULL, run INTEGER, state_bytes BIGINT,
        CONSTRAINT pk_batches PRIMARY KEY (stream, generation, batch_id),
        CONSTRAINT fk_batches_generations {_GENERATION})""",
    f"""CREATE TABLE log_lines (
        stream VARCHAR NOT NULL, generation INTEGER NOT NULL, log VARCHAR NOT NULL, entry BIGINT NOT NULL,
        text {{bytes}} NOT NULL, CONSTRAINT pk_log_lines PRIMARY KEY (stream, generation, log, entry),
        CONSTRAINT fk_log_lines_generations {_GENERATION})""",
    f"""CREATE TABLE replaced_lines (
        stream VARCHAR NOT NULL, generation INTEGER NOT NULL, log VARCHAR NOT NULL, entry BIGINT NOT NULL,
        seen_ms BIGINT NOT NULL, text {{bytes}} NOT NULL,
        CONSTRAINT pk_replaced_lines PRIMARY KEY (stream, generation, log, entry, seen_ms),
        CONSTRAINT fk_replaced_lines_generations {_GENERATION})""",
    """CREATE TABLE sink_marks (
        stream VARCHAR NOT NULL, seen_ms BIGINT NOT NULL, written BIGINT NOT NULL, committed BIGINT,
        CONSTRAINT pk_sink_marks PRIMARY KEY (stream, seen_ms),
        CONSTRAINT fk_sink_marks_streams FOREIGN KEY(stream) REFERENCES streams (full_name))""",
    """CREATE TABLE operations (
        id VARCHAR NOT NULL, stream VARCHAR NOT NULL, goal VARCHAR NOT NULL, status VARCHAR NOT NULL,
        started_ms BIGINT NOT NULL, ended_ms BIGINT, summary TEXT NOT NULL,
        CONSTRAINT pk_operations PRIMARY KEY (id),
        CONSTRAINT fk_operations_streams FOREIGN KEY(stream) REFERENCES streams (full_name))""",
    "CREATE INDEX ix_operations_stream_started_ms ON operations (stream, started_ms)",
    """CREATE TABLE operation_files (
        operation VARCHAR NOT NULL, home VARCHAR NOT NULL, stream_id VARCHAR NOT NULL, plan TEXT NOT NULL,
        journal TEXT NOT NULL, CONSTRAINT pk_operation_files PRIMARY KEY (operation))""",
    # No foreign key: a lease is taken before a new stream is registered.
    """CREATE TABLE leases (
        stream VARCHAR NOT NULL, fence BIGINT NOT NULL, host VARCHAR, pid BIGINT, pid_started BIGINT, jvm_pid BIGINT,
        jvm_started BIGINT, pid_space VARCHAR, purpose VARCHAR NOT NULL, acquired_ms BIGINT NOT NULL,
        heartbeat_ms BIGINT NOT NULL, CONSTRAINT pk_leases PRIMARY KEY (stream))""",
)


def ensure_schema(database: Database, *, create: bool) -> None:
    """Create a missing schema if ``create``.

    Raises ``NotFound`` (``ledger-missing``) or ``DataError`` (``ledger-version``, ``ledger-unreadable``).
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
    if found is not None:
        raise DataError(
            "ledger-version",
            "The ledger has the schema of another version of Slackwater",
            where=database.place,
            expected=f"schema version {SCHEMA_VERSION}",
            found=found,
            hint="use the version of Slackwater that made the ledger",
        )
    if not create:
        raise _missing(database)
    _create(database)


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


def _missing(database: Database) -> NotFound:
    return NotFound(
        "ledger-missing",
        "There is no ledger",
        where=database.place,
        hint=f"run a pipeline first: {command('run', 'FILE')}, or point --home at the home of one that has run",
    )


def _create(database: Database) -> None:
    if database.file:
        database.require_writable()
        _use_write_ahead_log(database, database.file)
    with database.write() as connection:
        if not database.is_sqlite:
            connection.execute("SELECT pg_advisory_xact_lock(:key)", {"key": _CREATION_LOCK})
        # Read again under the lock: another process may have created the schema meanwhile.
        if _schema_version(connection) is None:
            for statement in _SCHEMA:
                connection.execute(statement.format(**connection.types))
            connection.insert_absent(versions, {"version_num": SCHEMA_VERSION})


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
    if not connection.has_table(versions.name):
        return None
    return next(iter(connection.column(versions, "version_num", "")), None)
