"""Tables as they are in the database: the sink's own, and those that its batches have staged."""

from __future__ import annotations

from hashlib import sha256

from sqlalchemy import Connection, MetaData, Table, inspect
from sqlalchemy.exc import NoSuchTableError

from slackwater.core.errors import StreamFailed
from slackwater.sinks.common.database.marked import MarkedTarget
from slackwater.sinks.common.database.marker import limit_wait
from slackwater.sinks.common.database.problems import writing


def reflected(connection: Connection, name: str) -> Table:
    """The table as it is in the database. Raises StreamFailed if there is none."""
    schema, _, table = name.rpartition(".")
    try:
        return Table(table, MetaData(), schema=schema or None, autoload_with=connection)
    except NoSuchTableError as error:
        raise StreamFailed("sink-table-changed", f"The table {name} does not exist any more") from error


def column_names(target: MarkedTarget, table: str) -> set[str] | None:
    """The columns of the table, ``None`` if there is none. Raises StreamFailed."""
    schema, _, name = table.rpartition(".")
    with writing(target.location):
        found = inspect(target.engine)
        if not found.has_table(name, schema or None):
            return None
        return {column["name"] for column in found.get_columns(name, schema or None)}


def staged_prefix(stream_id: str, table: str) -> str:
    """How the names of all tables start that a stream stages for this table; eight characters follow."""
    return f"slackwater_stage_{sha256(f'{stream_id}/{table}'.encode()).hexdigest()[:12]}"


def drop_orphans(target: MarkedTarget, prefix: str) -> None:
    """Drop what interrupted batches staged. Earlier runs, which might still stage, must be refused already."""
    with writing(target.location):
        for name in inspect(target.engine).get_table_names():
            if name.startswith(prefix):
                with target.engine.begin() as connection:
                    limit_wait(connection)
                    reflected(connection, name).drop(connection)
