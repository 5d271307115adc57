"""The tables of the ledger. ``migrations/`` builds them; a test compares the two.

Times are epoch milliseconds and wide integers. A stream is known by its full name, ``pipeline/stream``.
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

SCHEMA_VERSION = "0003"
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
    Column("full_name", String, primary_key=True),
    Column("pipeline", String, nullable=False),
    Column("name", String, nullable=False),
    Column("sink", JSON, nullable=False),
    Column("output_mode", String, nullable=False),
    Column("pipeline_file", String, nullable=False),
    Column("current_generation", Integer, nullable=False),
    Column("id", String),
)

generations = Table(
    "generations",
    metadata,
    Column("stream", ForeignKey("streams.full_name"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("location", String, nullable=False),
    Column("query_id", String),
    Column("based_at", BigInteger),
    Column("parent", Integer),
    Column("source_cut", JSON, nullable=False),
    Column("layout", JSON(none_as_null=True)),
)

runs = Table(
    "runs",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("stream", String, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("spark_version", String, nullable=False),
    Column("started_ms", BigInteger, nullable=False),
    Column("ended_ms", BigInteger),
    Column("end", String),
    Column("reason", Text),
    Column("stop_requested_ms", BigInteger),
    Column("settings", JSON(none_as_null=True)),
    Column("code", String),
    Column("failure", String),
    Column("failure_code", String),
    Column("rows_digest", String),
    _belongs_to_generation(),
    Index(None, "stream", "id"),
)

batches = Table(
    "batches",
    metadata,
    Column("stream", String, primary_key=True),
    Column("generation", Integer, primary_key=True, autoincrement=False),
    Column("batch_id", BigInteger, primary_key=True, autoincrement=False),
    Column("timestamp_ms", BigInteger, nullable=False),
    Column("input_rows", BigInteger, nullable=False),
    Column("sources", JSON, nullable=False),
    Column("watermark_ms", BigInteger),
    Column("event_time_min_ms", BigInteger),
    Column("event_time_max_ms", BigInteger),
    Column("late_rows", BigInteger, nullable=False),
    Column("state_rows", BigInteger, nullable=False),
    Column("output_rows", BigInteger),
    Column("durations_ms", JSON, nullable=False),
    Column("run", Integer),
    _belongs_to_generation(),
)

log_lines = Table(
    "log_lines",
    metadata,
    Column("stream", String, primary_key=True),
    Column("generation", Integer, primary_key=True, autoincrement=False),
    Column("log", String, primary_key=True),
    Column("entry", BigInteger, primary_key=True, autoincrement=False),
    # Bytes and not text: Kafka's sources/<i>/0 begins with a NUL, which PostgreSQL's text cannot hold.
    Column("text", LargeBinary, nullable=False),
    _belongs_to_generation(),
)

replaced_lines = Table(
    "replaced_lines",
    metadata,
    Column("stream", String, primary_key=True),
    Column("generation", Integer, primary_key=True, autoincrement=False),
    Column("log", String, primary_key=True),
    Column("entry", BigInteger, primary_key=True, autoincrement=False),
    Column("seen_ms", BigInteger, primary_key=True, autoincrement=False),
    Column("text", LargeBinary, nullable=False),
    _belongs_to_generation(),
)

sink_marks = Table(
    "sink_marks",
    metadata,
    Column("stream", ForeignKey("streams.full_name"), primary_key=True),
    Column("seen_ms", BigInteger, primary_key=True, autoincrement=False),
    Column("written", BigInteger, nullable=False),
    Column("committed", BigInteger),
)

operations = Table(
    "operations",
    metadata,
    Column("id", String, primary_key=True),
    Column("stream", ForeignKey("streams.full_name"), nullable=False),
    Column("goal", String, nullable=False),
    Column("status", String, nullable=False),
    Column("started_ms", BigInteger, nullable=False),
    Column("ended_ms", BigInteger),
    Column("summary", Text, nullable=False),
    Index(None, "stream", "started_ms"),
)

# No foreign key: a lease is taken before a new stream is registered.
leases = Table(
    "leases",
    metadata,
    Column("stream", String, primary_key=True),
    Column("fence", BigInteger, nullable=False),
    Column("host", String),
    Column("pid", BigInteger),
    Column("pid_started", BigInteger),
    Column("jvm_pid", BigInteger),
    Column("jvm_started", BigInteger),
    Column("pid_space", String),
    Column("purpose", String, nullable=False),
    Column("acquired_ms", BigInteger, nullable=False),
    Column("heartbeat_ms", BigInteger, nullable=False),
)
