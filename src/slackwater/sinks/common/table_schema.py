"""The schema of a table that is created for the rows of a query."""

from __future__ import annotations

from pyspark.sql.types import StructField, StructType

_OF_SPARK = "spark."
"""Prefix of what Spark keeps in a column for itself: readers of the table would inherit the query's watermark."""


def table_schema(schema: StructType) -> StructType:
    """The schema without what Spark keeps in its columns for itself, each column nullable."""
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
