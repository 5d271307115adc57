"""The first batch of a generation that was started at a position, and not after a batch of another generation."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("generations", sa.Column("begins", sa.BigInteger))
