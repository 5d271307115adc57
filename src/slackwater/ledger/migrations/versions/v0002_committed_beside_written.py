"""The committed batch when a sink mark was read: the sink skips a batch that it has when it runs again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("sink_marks", sa.Column("committed", sa.BigInteger()))
