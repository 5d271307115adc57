"""The tables of the ledger. ``migrations/`` builds them; a test compares the two.

Times are epoch milliseconds and wide integers. A stream is known by its full name, ``pipeline/stream``.
"""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, ForeignKeyConstraint, Index, MetaData, Table

from slackwater.ledger.columns import Bytes, CheckedBigInteger, CheckedInteger, JsonList, JsonObject, LongText, Name

SCHEMA_VERSION = "0004"
"""The newest revision in ``migrations/versions``, known here so that opening a ledger need not import Alembic."""

VERSION_TABLE = "slackwater_version"
"""Not Alembic's default name: on PostgreSQL the database may be shared with another program that uses Alembic."""

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)


def _belongs_to_generation() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(["stream", "generation"], ["generations.stream", "generations.number"])


streams = Table(
    "streams",
    metadata,
    Column("full_name", Name, primary_key=True),
    Column("pipeline", Name, nullable=False),
    Column("name", Name, nullable=False),
    Column("sink", JsonObject, nullable=False),
    Column("output_mode", Name, nullable=False),
    Column("pipeline_file", Name, nullable=False),
    Column("current_generation", CheckedInteger, nullable=False),
    Column("id", Name),
)

generations = Table(
    "generations",
    metadata,
    Column("stream", ForeignKey("streams.full_name"), primary_key=True),
    Column("number", CheckedInteger, primary_key=True, autoincrement=False),
    Column("location", Name, nullable=False),
    Column("query_id", Name),
    Column("based_at", CheckedBigInteger),
    Column("parent", CheckedInteger),
    Column("source_cut", JsonObject, nullable=False),
    Column("layout", JsonObject(none_as_null=True)),
    Column("begins", CheckedBigInteger),
)

runs = Table(
    "runs",
    metadata,
    Column("id", CheckedInteger, primary_key=True, autoincrement=True),
    Column("stream", Name, nullable=False),
    Column("generation", CheckedInteger, nullable=False),
    Column("spark_version", Name, nullable=False),
    Column("started_ms", CheckedBigInteger, nullable=False),
    Column("ended_ms", CheckedBigInteger),
    Column("end", Name),
    Column("reason", LongText),
    Column("stop_requested_ms", CheckedBigInteger),
    Column("settings", JsonObject(none_as_null=True)),
    Column("code", Name),
    Column("failure", Name),
    Column("failure_code", Name),
    Column("rows_digest", Name),
    _belongs_to_generation(),
    Index(None, "stream", "id"),
)

batches = Table(
    "batches",
    metadata,
    Column("stream", Name, primary_key=True),
    Column("generation", CheckedInteger, primary_key=True, autoincrement=False),
    Column("batch_id", CheckedBigInteger, primary_key=True, autoincrement=False),
    Column("timestamp_ms", CheckedBigInteger, nullable=False),
    Column("input_rows", CheckedBigInteger, nullable=False),
    Column("sources", JsonList, nullable=False),
    Column("watermark_ms", CheckedBigInteger),
    Column("event_time_min_ms", CheckedBigInteger),
    Column("event_time_max_ms", CheckedBigInteger),
    Column("late_rows", CheckedBigInteger, nullable=False),
    Column("state_rows", CheckedBigInteger, nullable=False),
    Column("output_rows", CheckedBigInteger),
    Column("durations_ms", JsonObject, nullable=False),
    Column("run", CheckedInteger),
    _belongs_to_generation(),
)

log_lines = Table(
    "log_lines",
    metadata,
    Column("stream", Name, primary_key=True),
    Column("generation", CheckedInteger, primary_key=True, autoincrement=False),
    Column("log", Name, primary_key=True),
    Column("entry", CheckedBigInteger, primary_key=True, autoincrement=False),
    # Bytes and not a string: Kafka's sources/<i>/0 begins with a NUL, which PostgreSQL's text cannot hold.
    Column("text", Bytes, nullable=False),
    _belongs_to_generation(),
)

replaced_lines = Table(
    "replaced_lines",
    metadata,
    Column("stream", Name, primary_key=True),
    Column("generation", CheckedInteger, primary_key=True, autoincrement=False),
    Column("log", Name, primary_key=True),
    Column("entry", CheckedBigInteger, primary_key=True, autoincrement=False),
    Column("seen_ms", CheckedBigInteger, primary_key=True, autoincrement=False),
    Column("text", Bytes, nullable=False),
    _belongs_to_generation(),
)

sink_marks = Table(
    "sink_marks",
    metadata,
    Column("stream", ForeignKey("streams.full_name"), primary_key=True),
    Column("seen_ms", CheckedBigInteger, primary_key=True, autoincrement=False),
    Column("written", CheckedBigInteger, nullable=False),
    Column("committed", CheckedBigInteger),
)

operations = Table(
    "operations",
    metadata,
    Column("id", Name, primary_key=True),
    Column("stream", ForeignKey("streams.full_name"), nullable=False),
    Column("goal", Name, nullable=False),
    Column("status", Name, nullable=False),
    Column("started_ms", CheckedBigInteger, nullable=False),
    Column("ended_ms", CheckedBigInteger),
    Column("summary", LongText, nullable=False),
    Index(None, "stream", "started_ms"),
)

# No foreign key: a lease is taken before a new stream is registered.
leases = Table(
    "leases",
    metadata,
    Column("stream", Name, primary_key=True),
    Column("fence", CheckedBigInteger, nullable=False),
    Column("host", Name),
    Column("pid", CheckedBigInteger),
    Column("pid_started", CheckedBigInteger),
    Column("jvm_pid", CheckedBigInteger),
    Column("jvm_started", CheckedBigInteger),
    Column("pid_space", Name),
    Column("purpose", Name, nullable=False),
    Column("acquired_ms", CheckedBigInteger, nullable=False),
    Column("heartbeat_ms", CheckedBigInteger, nullable=False),
)
