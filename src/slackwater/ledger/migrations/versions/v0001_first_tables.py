"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "streams",
        sa.Column("full_name", sa.String(), nullable=False),
        sa.Column("pipeline", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("sink", sa.JSON(), nullable=False),
        sa.Column("output_mode", sa.String(), nullable=False),
        sa.Column("pipeline_file", sa.String(), nullable=False),
        sa.Column("current_generation", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("full_name", name="pk_streams"),
    )
    op.create_table(
        "generations",
        sa.Column("stream", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("location", sa.String(), nullable=False),
        sa.Column("query_id", sa.String()),
        sa.Column("based_at", sa.BigInteger()),
        sa.Column("parent", sa.Integer()),
        sa.Column("source_cut", sa.JSON(), nullable=False),
        sa.Column("layout", sa.JSON()),
        sa.PrimaryKeyConstraint("stream", "number", name="pk_generations"),
        sa.ForeignKeyConstraint(["stream"], ["streams.full_name"], name="fk_generations_streams"),
    )
    _create_tables_of_a_generation()
    op.create_table(
        "sink_marks",
        sa.Column("stream", sa.String(), nullable=False),
        sa.Column("seen_ms", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("written", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("stream", "seen_ms", name="pk_sink_marks"),
        sa.ForeignKeyConstraint(["stream"], ["streams.full_name"], name="fk_sink_marks_streams"),
    )
    op.create_table(
        "operations",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("stream", sa.String(), nullable=False),
        sa.Column("goal", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("started_ms", sa.BigInteger(), nullable=False),
        sa.Column("ended_ms", sa.BigInteger()),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_operations"),
        sa.ForeignKeyConstraint(["stream"], ["streams.full_name"], name="fk_operations_streams"),
    )
    op.create_index("ix_operations_stream_started_ms", "operations", ["stream", "started_ms"])
    op.create_table(
        "leases",
        sa.Column("stream", sa.String(), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("host", sa.String()),
        sa.Column("pid", sa.BigInteger()),
        sa.Column("pid_started", sa.BigInteger()),
        sa.Column("jvm_pid", sa.BigInteger()),
        sa.Column("jvm_started", sa.BigInteger()),
        sa.Column("pid_space", sa.String()),
        sa.Column("purpose", sa.String(), nullable=False),
        sa.Column("acquired_ms", sa.BigInteger(), nullable=False),
        sa.Column("heartbeat_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("stream", name="pk_leases"),
    )


def _belongs_to_generation(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["stream", "generation"], ["generations.stream", "generations.number"], name=f"fk_{table}_generations"
    )


def _create_tables_of_a_generation() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("stream", sa.String(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("spark_version", sa.String(), nullable=False),
        sa.Column("started_ms", sa.BigInteger(), nullable=False),
        sa.Column("ended_ms", sa.BigInteger()),
        sa.Column("end", sa.String()),
        sa.Column("reason", sa.Text()),
        sa.Column("stop_requested_ms", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
        _belongs_to_generation("runs"),
    )
    op.create_index("ix_runs_stream_id", "runs", ["stream", "id"])
    op.create_table(
        "batches",
        sa.Column("stream", sa.String(), nullable=False),
        sa.Column("generation", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("batch_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("timestamp_ms", sa.BigInteger(), nullable=False),
        sa.Column("input_rows", sa.BigInteger(), nullable=False),
        sa.Column("sources", sa.JSON(), nullable=False),
        sa.Column("watermark_ms", sa.BigInteger()),
        sa.Column("event_time_min_ms", sa.BigInteger()),
        sa.Column("event_time_max_ms", sa.BigInteger()),
        sa.Column("late_rows", sa.BigInteger(), nullable=False),
        sa.Column("state_rows", sa.BigInteger(), nullable=False),
        sa.Column("output_rows", sa.BigInteger()),
        sa.Column("durations_ms", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("stream", "generation", "batch_id", name="pk_batches"),
        _belongs_to_generation("batches"),
    )
    op.create_table(
        "log_lines",
        sa.Column("stream", sa.String(), nullable=False),
        sa.Column("generation", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("log", sa.String(), nullable=False),
        sa.Column("entry", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("text", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("stream", "generation", "log", "entry", name="pk_log_lines"),
        _belongs_to_generation("log_lines"),
    )
