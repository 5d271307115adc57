"""What a run ran with and how it failed, the run of a batch, stream ids, and log lines that were replaced."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("streams", sa.Column("id", sa.String))
    op.add_column("runs", sa.Column("settings", sa.JSON(none_as_null=True)))
    for name in ("code", "failure", "failure_code", "rows_digest"):
        op.add_column("runs", sa.Column(name, sa.String))
    op.add_column("batches", sa.Column("run", sa.Integer))
    op.create_table(
        "replaced_lines",
        sa.Column("stream", sa.String, primary_key=True),
        sa.Column("generation", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("log", sa.String, primary_key=True),
        sa.Column("entry", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("seen_ms", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("text", sa.LargeBinary, nullable=False),
        sa.ForeignKeyConstraint(
            ["stream", "generation"],
            ["generations.stream", "generations.number"],
            name="fk_replaced_lines_generations",
        ),
    )
