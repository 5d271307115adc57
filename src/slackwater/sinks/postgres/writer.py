"""Writes batches: executors stage rows, a transaction publishes them with the marker.

Staged tables are unlogged, and a server crash empties them: publication counts rows. After a connection loss during
commit the marker is read again: the batch is complete or absent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING

from psycopg.conninfo import make_conninfo
from pyspark import cloudpickle
from pyspark.sql import functions as F
from sqlalchemy.exc import DBAPIError

from slackwater.core.errors import StreamFailed
from slackwater.sinks.common.batch_function import backquoted
from slackwater.sinks.common.database import problem_of
from slackwater.sinks.common.marker import lost
from slackwater.sinks.common.spark_tables import MarkedWriter
from slackwater.sinks.postgres import staging
from slackwater.sinks.postgres.table import Publication, StagedColumn, drop_staged, run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OUTCOME_WAIT_S = 30
_DURABLE = "SELECT set_config('synchronous_commit', 'local', true) WHERE current_setting('synchronous_commit') = 'off'"


@dataclass
class PostgresWriter(MarkedWriter):
    """The writer of a run, made at the start after the table check."""

    columns: tuple[StagedColumn, ...]
    publication: Publication

    def _write(self, frame: DataFrame, batch: int) -> None:
        register: Callable[[ModuleType], None] = cloudpickle.register_pickle_by_value
        register(staging)
        chosen = [F.expr(c.kind.spark.format(backquoted(c.name))).alias(c.staged_name) for c in self.columns]
        with self._staging_failures():
            rows = frame.select(*chosen).mapInArrow(staging.stager(self._staging), staging.RESULT).collect()
        staged = {row["staged"]: row["row_count"] for row in rows}
        try:
            self._publish(staged, batch)
        except BaseException:
            self._drop(staged)
            raise

    def _publish(self, staged: Mapping[str, int], batch: int) -> None:
        try:
            with self.target.engine.begin() as connection:
                # Spark commits the batch next: a server that answers before it has written could lose it in a crash.
                run(connection, _DURABLE)
                # The marker's row first: until the commit no other run can publish, and a cut or a swap waits.
                if not self._advance(connection, batch):
                    self._drop(staged)
                    return
                self.publication.publish(connection, staged, batch, self._where)
        except DBAPIError as error:
            # A server that took over from another one may lack staged tables: that is a loss and no change by the user.
            changed = problem_of(error).code == "sink-table-changed"
            missing = [rows for name, rows in staged.items() if changed and name in str(error.orig)]
            if missing:
                raise lost(self._where, missing[0], None) from error
            self._check_committed(batch, error)
        self.published = batch

    def _was_committed(self, batch: int) -> bool:
        """Return whether a lost commit succeeded: the row stays locked until the transaction has ended."""
        with self.target.writes() as connection:
            run(connection, f"SET LOCAL lock_timeout = '{OUTCOME_WAIT_S}s'")
            mark = self.target.marker.read(connection, lock=True)
            return self.target.marker.check_fence(mark, self.context).batch_id >= batch

    def _drop(self, staged: Mapping[str, int]) -> None:
        """Drop staged tables; the stream's next start drops the rest."""
        with suppress(Exception), self.target.engine.begin() as connection:
            drop_staged(connection, self.publication.table, staged)

    @cached_property
    def _staging(self) -> staging.Staging:
        with self.target.writes() as connection:
            driver = connection.connection.driver_connection
            if driver is None:
                raise StreamFailed("sink-unreachable", "The database of the sink cannot be reached", where=self._where)
            # Executors may lack the password that the driver found.
            secret = {"password": driver.info.password} if driver.info.password else {}
            conninfo = make_conninfo("", **dict(driver.info.get_parameters()) | secret)
        return staging.Staging(
            conninfo,
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
