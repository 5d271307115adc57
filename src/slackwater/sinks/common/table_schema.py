"""The schema of a new table for a query's rows."""

from __future__ import annotations

from pyspark.sql.types import StructField, StructType

_OF_SPARK = "spark."
"""The prefix of Spark's own column metadata: readers would inherit the query's watermark."""


def table_schema(schema: StructType) -> StructType:
    """The schema with nullable columns and without Spark's metadata."""
    return StructType(
        [
            StructField(
                field.name,
                field.dataType,
                nullable=True,
                metadata={key: value for key, value in field.metadata.items() if not key.startswith(_OF_SPARK)},
            )
            for field in schema
        ]
    )
