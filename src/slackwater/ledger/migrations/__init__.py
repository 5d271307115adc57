"""Alembic migrations of the ledger, run by the program itself when it meets an older ledger.

A new one: add ``versions/vNNNN_what.py`` with the next number as its revision, change ``tables.py`` to match, raise
``tables.SCHEMA_VERSION``. Use ``op.batch_alter_table``: SQLite cannot alter most things in place. A released revision
is never changed, and there is no way down: an older Slackwater refuses a newer ledger.
"""

from __future__ import annotations

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection


def config(connection: Connection | None = None) -> Config:
    """Alembic's settings, without a file at any machine's path."""
    settings = Config(attributes={"connection": connection})
    settings.set_main_option("script_location", "slackwater.ledger:migrations")
    settings.set_main_option("path_separator", "os")
    return settings


def upgrade(connection: Connection) -> None:
    """Bring the schema to the newest revision, within the transaction that the connection is in."""
    command.upgrade(config(connection), "head")
