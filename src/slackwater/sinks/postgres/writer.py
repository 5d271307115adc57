"""Writes batches: executors stage the rows, then one transaction publishes them together with the marker's row.

Nothing staged counts before it is published, and a batch that the marker has is not staged again. If the connection
is lost while a transaction is committed, the marker is read again: the batch is there as a whole, or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Literal

from slackwater.errors import StreamFailed
from slackwater.model.sink import WriteContext
from slackwater.sinks.batch_function import run_without_output
from slackwater.sinks.database.marked import MarkedTarget
from slackwater.sinks.database.problems import problem_of, writing
from slackwater.sinks.postgres import staging
from slackwater.sinks.postgres.names import BATCH_COLUMN, TableName, literal, quoted
from slackwater.sinks.postgres.statements import run
from slackwater.sinks.postgres.types import StagedColumn
from slackwater.sinks.spark_names import backquoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from sqlalchemy import Connection, Engine

OUTCOME_WAIT_S = 30
Mode = Literal["insert", "upsert", "replace"]


@dataclass(frozen=True, slots=True)
class Publication:
    """How staged rows get into the table. ``filled`` maps the table's columns to expressions of staged ones."""

    table: TableName
    mode: Mode
    keys: tuple[str, ...]
    filled: Mapping[str, str]
    batch_column: bool = False

    def statements(self, staged: Sequence[str], batch: int) -> list[str]:
        """The statements that publish the staged tables of a batch, and drop them."""
        filled = dict(self.filled) | ({BATCH_COLUMN: str(batch)} if self.batch_column else {})
        into = f"INSERT INTO {self.table.quoted} ({', '.join(quoted(name) for name in filled)})"
        select = ", ".join(filled.values())
        tables = [self.table.beside(name).quoted for name in staged]
        statements = [f"DELETE FROM {self.table.quoted}"] if self.mode == "replace" else []
        if self.mode == "upsert" and tables:
            # One statement for all: only so the server sees a key that two tasks staged.
            rows = " UNION ALL ".join(f"SELECT {select} FROM {table}" for table in tables)
            statements.append(f"{into} {rows} {self._on_conflict()}")
        else:
            statements += [f"{into} SELECT {select} FROM {table}" for table in tables]
        return statements + [f"DROP TABLE {table}" for table in tables]

    def _on_conflict(self) -> str:
        others = [name for name in self.filled if name not in self.keys]
        found = f"ON CONFLICT ({', '.join(quoted(key) for key in self.keys)}) DO "
        if not others:
            return found + "NOTHING"
        return found + "UPDATE SET " + ", ".join(f"{quoted(name)} = excluded.{quoted(name)}" for name in others)


@dataclass(frozen=True)
class Writer:
    """Writes the batches of one run. It is made when the query starts, after the table was checked."""

    target: MarkedTarget
    context: WriteContext
    columns: tuple[StagedColumn, ...]
    publication: Publication

    def write(self, frame: DataFrame, batch: int) -> None:
        """Write one batch, unless it was written before. Raises StreamFailed, or Refused for a fenced run."""
        if self.target.is_written(self.context, batch):
            run_without_output(frame)
            return
        staged = self._stage(frame)
        try:
            self._publish(staged, batch)
        except BaseException:
            self._drop(staged)
            raise

    def _stage(self, frame: DataFrame) -> list[str]:
        from pyspark import cloudpickle  # noqa: PLC0415 - heavy; only a run pays for it
        from pyspark.errors import PySparkException  # noqa: PLC0415
        from pyspark.sql import functions as F  # noqa: PLC0415

        register: Callable[[ModuleType], None] = cloudpickle.register_pickle_by_value
        register(staging)
        chosen = [F.expr(c.kind.spark.format(backquoted(c.name))).alias(c.staged_name) for c in self.columns]
        try:
            rows = frame.select(*chosen).mapInArrow(staging.stager(self._staging), staging.RESULT).collect()
        except PySparkException as error:
            problem = problem_of(error)
            if problem.code == "sink-failed":
                raise  # The user's query, not the sink.
            raise problem.failed(self._where) from error
        return [row["staged"] for row in rows]

    def _publish(self, staged: Sequence[str], batch: int) -> None:
        from sqlalchemy.exc import DBAPIError  # noqa: PLC0415 - heavy; only what connects pays for it

        try:
            with self.target.engine.begin() as connection:
                if not self.target.marker.advance(connection, self.context, batch):
                    self._drop(staged)
                    return
                for statement in self.publication.statements(staged, batch):
                    run(connection, statement)
        except DBAPIError as error:
            problem = problem_of(error)
            if problem.code != "sink-unreachable" or not self._was_committed(batch):
                raise problem.failed(self._where) from error

    def _was_committed(self, batch: int) -> bool:
        """Whether a transaction whose outcome was lost was committed: the row stays locked until it has ended."""
        with writing(self._where), self.target.engine.begin() as connection:
            run(connection, f"SET LOCAL lock_timeout = '{OUTCOME_WAIT_S}s'")
            mark = self.target.marker.read(connection, lock=True)
            return self.target.marker.check_fence(mark, self.context).batch_id >= batch

    def _drop(self, staged: Sequence[str]) -> None:
        """Drop staged tables; what remains is dropped when a query of the stream starts."""
        with suppress(Exception), self.target.engine.begin() as connection:
            drop_staged(connection, self.publication.table, staged)

    @cached_property
    def _staging(self) -> staging.Staging:
        return staging.Staging(
            executors_conninfo(self.target.engine, self._where),
            self.publication.table.schema,
            self.publication.table.staged_prefix(self.context.stream_id),
            tuple(f"{column.staged_name} {column.kind.staged}" for column in self.columns),
            tuple(column.name for column in self.columns),
            tuple(place for place, column in enumerate(self.columns) if column.kind.is_text),
            tuple(place for place, column in enumerate(self.columns) if column.kind.is_json),
        )

    @property
    def _where(self) -> str:
        return self.target.location


def drop_staged(connection: Connection, table: TableName, staged: Sequence[str]) -> None:
    """Drop staged tables that exist."""
    for name in staged:
        run(connection, f"DROP TABLE IF EXISTS {table.beside(name).quoted}")


def drop_orphans(connection: Connection, table: TableName, stream_id: str) -> None:
    """Drop what interrupted batches of a stream staged for the table."""
    rows = run(
        connection,
        f"SELECT tablename FROM pg_tables WHERE schemaname = {literal(table.schema)} "
        f"AND starts_with(tablename::text, {literal(table.staged_prefix(stream_id))})",
    )
    drop_staged(connection, table, [row[0] for row in rows])


def executors_conninfo(engine: Engine, where: str) -> str:
    """The connection string for executors: with the password that the driver found, which they may not have."""
    from psycopg.conninfo import make_conninfo  # noqa: PLC0415 - heavy; only what connects pays for it

    with writing(where), engine.connect() as connection:
        driver = connection.connection.driver_connection
        if driver is None:
            raise StreamFailed("sink-unreachable", "The database of the sink cannot be reached", where=where)
        info = driver.info
        given = dict(info.get_parameters()) | ({"password": info.password} if info.password else {})
        return make_conninfo("", **given)
