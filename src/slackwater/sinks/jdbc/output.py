"""A table in any database: newest batch and owner from the marker's row."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import inspect, select

from slackwater.sinks.common.database.address import Address, address_in, require_table
from slackwater.sinks.common.database.marked import MarkedTarget
from slackwater.sinks.common.database.marker import Marker
from slackwater.sinks.common.database.problems import no_streaming_source, reading
from slackwater.sinks.common.opaque_output import AppendOnlyOutput
from slackwater.sinks.jdbc.tables import reflected
from slackwater.sinks.jdbc.traits import JDBC_TRAITS


def open_jdbc_output(identity: Mapping[str, str]) -> JdbcOutput:
    require_table("jdbc", identity)
    return JdbcOutput(address_in(identity), identity["table"])


class JdbcOutput(AppendOnlyOutput[MarkedTarget]):
    """A database table. Rows have no batch ids, so no batch can be cut."""

    def __init__(self, address: Address, table: str) -> None:
        self._table = table
        location = f"{address.location} {table}"
        super().__init__(
            "jdbc",
            JDBC_TRAITS,
            location,
            lambda: MarkedTarget(address, Marker(table), location),
            f"Table {table} does not show to which batch a row belongs",
        )

    shows_rows = True

    def may_have_rows(self, marked: int) -> bool:
        schema, _, name = self._table.rpartition(".")
        with reading(self.target.location), self.target.engine.connect() as connection:
            empty = not inspect(connection).has_table(name, schema or None)
            if not empty:
                empty = connection.execute(select(reflected(connection, self._table)).limit(1)).first() is None
        return marked >= 0 or not empty

    def how_to_empty(self, marked: int) -> str:
        return self.target.how_to_empty(self._table, marked)

    def reader_path(self) -> str:
        raise no_streaming_source("", self.location)
