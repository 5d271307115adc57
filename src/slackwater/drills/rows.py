"""Rows for any schema: the same in each run, and each value once, as far as its type has as many."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from slackwater.drills.steps import ROWS_OF_TASK, STEPS_MOST, TASKS
from slackwater.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType, StructType

BYTE_VALUES = 100


def stage_rows(spark: SparkSession, schema: StructType, folder: str) -> None:
    """Write the rows of all batches as Parquet: a file for each task of each batch, in the order of their names."""
    files = STEPS_MOST * TASKS
    rows = [tuple(value_of(column.dataType, number) for column in schema) for number in range(files * ROWS_OF_TASK)]
    spark.createDataFrame(spark.sparkContext.parallelize(rows, files), schema).write.parquet(folder)


def value_of(kind: DataType, number: int) -> Any:
    """The value of this type for a row. Raises PipelineError (``audit-type``) for a type that has none."""
    from pyspark.sql import types as T  # noqa: PLC0415 - heavy; only a run pays for it

    if isinstance(kind, T.ArrayType):
        return [value_of(kind.elementType, number)]
    if isinstance(kind, T.MapType):
        return {value_of(kind.keyType, number): value_of(kind.valueType, number)}
    if isinstance(kind, T.StructType):
        return tuple(value_of(column.dataType, number) for column in kind)
    if isinstance(kind, T.DecimalType):
        return Decimal(number % 10**kind.precision).scaleb(-kind.scale)
    if isinstance(kind, T.CharType | T.VarcharType):
        return str(number)[-kind.length :]
    simple = _SIMPLE.get(kind.typeName())
    if simple is None:
        raise PipelineError(
            "audit-type",
            "The audit has no values for a type of the stream's rows",
            found=kind.simpleString(),
            hint="audit a stream with the same sink function and simpler columns",
        )
    return simple(number)


_DAY, _TIME = date(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC)
_SIMPLE: dict[str, Any] = {
    "byte": lambda number: number % BYTE_VALUES,
    "short": lambda number: number,
    "integer": lambda number: number,
    "long": lambda number: number,
    "float": lambda number: number + 0.5,
    "double": lambda number: number + 0.5,
    "string": lambda number: f"row {number}",
    "boolean": lambda number: number % 2 == 0,
    "date": lambda number: _DAY + timedelta(days=number),
    "timestamp": lambda number: _TIME + timedelta(minutes=number),
    "timestamp_ntz": lambda number: (_TIME + timedelta(minutes=number)).replace(tzinfo=None),
    "binary": lambda number: bytearray(str(number).encode()),
    "void": lambda _number: None,
}
