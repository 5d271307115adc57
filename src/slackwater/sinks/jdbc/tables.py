"""Tables in the database: the sink's table, and staged tables."""

from __future__ import annotations

from hashlib import sha256

from sqlalchemy import Connection, MetaData, Table, inspect
from sqlalchemy.exc import NoSuchTableError

from slackwater.core.errors import StreamFailed
from slackwater.sinks.common.database.marked import MarkedTarget
from slackwater.sinks.common.database.marker import limit_wait
from slackwater.sinks.common.database.problems import writing


def reflected(connection: Connection, name: str) -> Table:
    schema, _, table = name.rpartition(".")
    try:
        return Table(table, MetaData(), schema=schema or None, autoload_with=connection)
    except NoSuchTableError as error:
        raise StreamFailed("sink-table-changed", f"The table {name} does not exist any more") from error


def column_names(target: MarkedTarget, table: str) -> set[str] | None:
    schema, _, name = table.rpartition(".")
    with writing(target.location):
        found = inspect(target.engine)
        if not found.has_table(name, schema or None):
            return None
        return {column["name"] for column in found.get_columns(name, schema or None)}


def staged_prefix(stream_id: str, table: str) -> str:
    """The prefix of a stream's staged tables; eight characters follow."""
    return f"slackwater_stage_{sha256(f'{stream_id}/{table}'.encode()).hexdigest()[:12]}"


def drop_orphans(target: MarkedTarget, prefix: str) -> None:
    """Drop interrupted batches' tables. Earlier runs, which might still stage, must be refused already."""
    with writing(target.location):
        for name in inspect(target.engine).get_table_names():
            if name.startswith(prefix):
                with target.engine.begin() as connection:
                    limit_wait(connection)
                    reflected(connection, name).drop(connection)
