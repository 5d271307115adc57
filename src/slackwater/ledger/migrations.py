"""The statements that build the ledger's tables and bring an older ledger's up to date, run when a ledger is opened.

A new version: append its statements here and change ``tables`` to match. A released version is never changed, and there
is no way down: an older Slackwater refuses a newer ledger.
"""

from __future__ import annotations

from collections.abc import Mapping

from slackwater.ledger.connection import Connection
from slackwater.ledger.tables import versions

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
}

_VERSION_TABLE = """CREATE TABLE IF NOT EXISTS slackwater_version (
    version_num VARCHAR(32) NOT NULL, CONSTRAINT slackwater_version_pkc PRIMARY KEY (version_num))"""

SCHEMA_VERSION = max(_VERSIONS)


def schema_version(connection: Connection) -> str | None:
    """The version of the schema, ``None`` where there is none."""
    if not connection.has_table(versions.name):
        return None
    return next(iter(connection.column(versions, "version_num", "")), None)


def upgrade(connection: Connection, to: str = SCHEMA_VERSION) -> None:
    """Bring the schema to a version, within the transaction that the connection is in."""
    found = schema_version(connection)
    if found is None:
        connection.execute(_VERSION_TABLE)
    for version, statements in _VERSIONS.items():
        if (found or "") < version <= to:
            for statement in statements:
                connection.execute(statement.format(**connection.types))
    connection.delete(versions, "1 = 1", {})
    connection.insert_absent(versions, {"version_num": to})
