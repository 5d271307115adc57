"""The table of PostgreSQL that the last stage writes, in a schema of its own, read by plain SQL."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, LiteralString

from examples.demo.compare import Row, row_of
from slackwater.core.errors import EnvironmentMissing
from slackwater.sinks import postgres
from slackwater.sinks.common.database import Address

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.sql import Composed

COLUMNS = ("day", "station", "readings", "mean_temperature_f")


@dataclass(frozen=True, slots=True)
class GoldTable:
    """A table in a schema that the demo has created. ``url`` has no password."""

    url: str
    password: str | None
    schema: str

    @property
    def name(self) -> str:
        """The table, as sinks name it."""
        return f"{self.schema}.daily_weather"

    def environment(self) -> Mapping[str, str]:
        """The environment variables from which ``weather_tables.py`` and libpq take it."""
        secret = {} if self.password is None else {"PGPASSWORD": self.password}
        return {"WEATHER_DATABASE": self.url, "WEATHER_TABLE": self.name, **secret}

    def connect(self) -> Connection[tuple[Any, ...]]:
        """A connection that commits each statement. Raises EnvironmentMissing."""
        import psycopg  # noqa: PLC0415 - an extra

        try:
            # libpq takes None for a password that is not given.
            return psycopg.connect(self.url, autocommit=True, connect_timeout=10, password=self.password)
        except psycopg.Error as error:
            raise _unusable(self.url, error) from error

    def rows(self) -> Counter[Row]:
        """All rows, without the batch that wrote them."""
        with self.connect() as connection:
            found = connection.execute(self.statement("SELECT {columns} FROM {table}"))
            return Counter(row_of(dict(zip(COLUMNS, values, strict=True))) for values in found)

    def newest_batch(self) -> int:
        """The newest batch that is visible, by the marker's row, which the run has made; -1 for none."""
        with self.connect() as connection:
            row = connection.execute(self.statement("SELECT max(batch_id) FROM {marker}")).fetchone()
        return -1 if row is None or row[0] is None else int(row[0])

    @contextmanager
    def held(self) -> Iterator[Callable[[], bool]]:
        """Hold the marker's row, so that no batch is published within the block.

        Yields a function: whether a transaction waits for the row.
        """
        waiting = "SELECT 1 FROM pg_stat_activity WHERE %s = ANY(pg_blocking_pids(pid))"
        with self.connect() as holder, self.connect() as observer, holder.transaction():
            holder.execute(self.statement("SELECT 1 FROM {marker} FOR UPDATE"))
            yield lambda: observer.execute(waiting, [holder.info.backend_pid]).fetchone() is not None

    def statement(self, text: LiteralString) -> Composed:
        """A statement with ``{columns}``, ``{table}``, ``{marker}`` and ``{schema}`` replaced by the table's names."""
        from psycopg.sql import SQL, Identifier  # noqa: PLC0415 - an extra

        return SQL(text).format(
            columns=SQL(", ").join(map(Identifier, COLUMNS)),
            table=Identifier(*self.name.split(".")),
            marker=Identifier(self.schema, "slackwater_marker"),
            schema=Identifier(self.schema),
        )


def address_of_database(url: str) -> Address:
    """The address that a user gave. Raises PipelineError unless it is one of PostgreSQL."""
    # With a table, as for the sink: what cannot be used is refused in the same words.
    return postgres(url, "daily_weather").address


@contextmanager
def new_gold_table(url: str, *, keep: bool) -> Iterator[GoldTable]:
    """A schema for the table, which is dropped at the end unless ``keep``.

    Raises PipelineError for an address that cannot be used, EnvironmentMissing for a database that cannot.
    """
    import psycopg  # noqa: PLC0415 - an extra

    # The other commands get a password by their environment, and the sink's recorded address has none.
    address = address_of_database(url)
    table = GoldTable(address.url, address.secret(), f"slackwater_demo_{uuid.uuid4().hex[:8]}")
    try:
        with table.connect() as connection:
            connection.execute(table.statement("CREATE SCHEMA {schema}"))
    except psycopg.Error as error:
        raise _unusable(table.url, error) from error
    try:
        yield table
    finally:
        if not keep:
            with table.connect() as connection:
                connection.execute(table.statement("DROP SCHEMA {schema} CASCADE"))


def _unusable(url: str, error: Exception) -> EnvironmentMissing:
    return EnvironmentMissing(
        "demo-database",
        "The demo cannot create a schema in this database",
        where=url,
        found=str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__,
        hint="give the address of a database in which you may create a schema: "
        "--postgres-url postgresql://user@host:5432/database, the password by PGPASSWORD",
    )
