"""Writes batches to a table of any database: rows and marker in the same transaction.

Spark's JDBC writer commits per partition; a task rerun after its commit doubles the partition. So rows have partition
and attempt id, and one attempt per partition is published if it has as many rows as the tasks wrote. Without a
JDBC url rows pass through the driver.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, timedelta
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle
from pyspark.accumulators import _accumulatorRegistry
from pyspark.sql.types import ArrayType, DataType, IntegerType, StringType, StructField, StructType, TimestampType
from sqlalchemy import Connection, delete, func, insert, inspect, select
from sqlalchemy.exc import DBAPIError

from slackwater.core.errors import StreamFailed
from slackwater.sinks.common.marker import lost
from slackwater.sinks.common.spark_tables import MarkedWriter
from slackwater.sinks.jdbc import attempts
from slackwater.sinks.jdbc.sink import POSTGRESQL_DRIVER, JdbcSink, reflected, staged_prefix

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CHUNK_ROWS = 1000
ATTEMPT, PARTITION = "slackwater_attempt", "slackwater_partition"


@dataclass
class JdbcWriter(MarkedWriter):
    sink: JdbcSink

    def _write(self, frame: DataFrame, batch: int) -> None:
        if self.sink.jdbc_url is None:
            self._publish(batch, frame)
            return
        staged = f"{staged_prefix(self.context.stream_id, self.sink.table)}{uuid.uuid4().hex[:8]}"
        try:
            with self._staging_failures():
                rows = stage(frame, self.sink, staged)
            self._publish(batch, frame, staged, rows)
        finally:
            # In a transaction of its own: some databases commit before they drop a table.
            with suppress(Exception), self.target.engine.begin() as connection:
                reflected(connection, staged).drop(connection)

    def _publish(self, batch: int, frame: DataFrame, staged: str | None = None, rows: int = 0) -> None:
        try:
            with self.target.engine.connect() as connection, connection.begin() as transaction:
                self._fill(connection, frame, staged, rows)
                # Last: a driver that is paused while it pulls its rows must not hold the marker's row.
                if not self._advance(connection, batch):
                    transaction.rollback()
                    return
        except DBAPIError as error:
            self._check_committed(batch, error)
        self.published = batch

    def _fill(self, connection: Connection, frame: DataFrame, staged: str | None, rows: int) -> None:
        table = reflected(connection, self.sink.table)
        missing = [name for name in frame.columns if name not in table.c]
        if missing:
            raise StreamFailed(
                "sink-table-changed",
                "The table has changed since the query started",
                where=self.target.location,
                expected=f"columns {', '.join(missing)} of the query in the table",
                found=", ".join(table.c.keys()),
                hint="put the column back, or change the query, and run the stream again",
            )
        if self.context.output_mode == "complete":
            # Not TRUNCATE, which commits the transaction in MySQL and Oracle.
            connection.execute(delete(table))
        if staged is not None:
            if not inspect(connection).has_table(staged):
                raise lost(self.target.location, rows, None)
            # One attempt for each partition: an attempt commits all its rows or none.
            source = reflected(connection, staged)
            whole = select(func.min(source.c[ATTEMPT])).group_by(source.c[PARTITION])
            chosen = select(*(source.c[name] for name in frame.columns)).where(source.c[ATTEMPT].in_(whole))
            # Not every driver counts them, and a trigger of the table may take other rows than it is given.
            if connection.execute(insert(table).from_select(frame.columns, chosen)).rowcount != rows:
                found = connection.execute(select(func.count()).select_from(chosen.subquery())).scalar_one()
                if found != rows:
                    raise lost(self.target.location, rows, found)
            return
        kinds = {field.name: field.dataType for field in frame.schema.fields}
        rows_of_frame = (row.asDict(recursive=True) for row in frame.toLocalIterator())
        while chunk := list(itertools.islice(rows_of_frame, CHUNK_ROWS)):
            values = [{name: _in_utc(value, kinds[name]) for name, value in row.items()} for row in chunk]
            connection.execute(insert(table), values)


def stage(frame: DataFrame, sink: JdbcSink, table: str) -> int:
    """Stage rows with partition and attempt id by Spark's JDBC writer.

    Returns the written rows, each partition counted once.
    """
    register: Callable[[ModuleType], None] = cloudpickle.register_pickle_by_value
    register(attempts)
    if sink.partitions_max is not None:
        # Given the option, Spark's writer does this after the rows have their attempts: a task would have several.
        frame = frame.coalesce(sink.partitions_max)
    more = [StructField(ATTEMPT, StringType()), StructField(PARTITION, IntegerType())]
    counter = frame.sparkSession.sparkContext.accumulator(0)
    tagged = frame.mapInArrow(attempts.tagger(counter), StructType([*frame.schema.fields, *more]))
    # Java finds a driver by its url only on the class path, where jars of spark.jars are not.
    driver = {"driver": POSTGRESQL_DRIVER} if sink.connectors else {}
    secret = sink.address.secret()
    options = {**driver, **({"password": secret} if secret else {}), **sink.options}
    tagged.write.format("jdbc").options(**options, url=sink.jdbc_url, dbtable=table).mode("error").save()
    # PySpark keeps every accumulator for the life of the process.
    _accumulatorRegistry.pop(counter.aid, None)
    return counter.value


def _in_utc(value: Any, kind: DataType) -> Any:
    """Convert to UTC: PySpark's timestamps are in the driver's zone, and a database would assume its session's."""
    if isinstance(kind, TimestampType) and value is not None:
        try:
            return value.astimezone(UTC)
        except (OverflowError, ValueError):  # The last day of 9999, a usual value for "no end": ValueError east of UTC.
            return value.replace(tzinfo=(value - timedelta(days=1)).astimezone().tzinfo)
    if isinstance(kind, ArrayType) and value is not None:
        return [_in_utc(one, kind.elementType) for one in value]
    return value
