"""The columns of Spark's ``KafkaWriter``: ``value``, ``key``, ``headers``, ``partition``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slackwater.core.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMNS = {
    "value": ("string", "binary"),
    "key": ("string", "binary"),
    "headers": ("array<struct<key:string,value:binary>>",),
    "partition": ("int",),
}
"""The types of each column, as ``simpleString``. A column ``topic`` is ignored, as the sink sets the topic."""
CASTS = {"headers": "array<struct<key:string,value:binary>>", "partition": "int"}


def check_columns(frame: DataFrame, stream: str) -> None:
    """Raises PipelineError (``sink-schema``) without a value, or for a wrong type."""
    types = {column.name.lower(): column.dataType.simpleString() for column in frame.schema.fields}
    if "value" not in types:
        raise PipelineError(
            "sink-schema",
            f"The rows of stream {stream} have no column named value, which the Kafka sink writes",
            expected="value (string or binary), optionally key, headers, partition",
            found=", ".join(types) or "no column",
            hint='such as: frame.select(F.to_json(F.struct("*")).alias("value"))',
        )
    wrong = [name for name, allowed in COLUMNS.items() if name in types and types[name] not in allowed]
    if wrong:
        name = wrong[0]
        raise PipelineError(
            "sink-schema",
            f"The Kafka sink cannot write a column of stream {stream} with this type",
            expected=f"{name}: {' or '.join(COLUMNS[name])}",
            found=f"{name}: {types[name]}",
            hint=f'such as: F.col("{name}").cast("{CASTS.get(name, "string")}")',
        )


def written_columns(frame: DataFrame) -> DataFrame:
    present = {column.lower() for column in frame.columns}
    kinds = {"value": "binary", "key": "binary", **CASTS}
    return frame.selectExpr(*(f"CAST({name} AS {kinds[name]}) AS {name}" for name in COLUMNS if name in present))
