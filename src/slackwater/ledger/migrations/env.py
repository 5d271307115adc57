"""Run by Alembic for each command; the connection, already in a transaction, comes from ``migrations.config``."""

from __future__ import annotations

from alembic import context

from slackwater.ledger.tables import VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    render_as_batch=True,
    # Alembic assumes that SQLite cannot roll back tables; with explicit BEGIN it can.
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
