"""Tables that Spark writes: the schema of a new table, and MERGE by keys."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from slackwater.core.errors import StreamFailed
from slackwater.sinks.common.batch_function import backquoted, persisted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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


_COUNT = "slackwater_rows"


@dataclass(frozen=True, slots=True)
class Merge:
    """A MERGE in which rows replace rows with equal ``keys``; ``table`` is for SQL, ``where`` for errors."""

    table: str
    keys: tuple[str, ...]
    where: str

    def write(self, frame: DataFrame, batch: int, run: Callable[[str], None]) -> bool:
        """Execute by ``run``; returns whether the batch has rows.

        Raises StreamFailed (``merge-keys``) for duplicate keys.
        """
        view = f"slackwater_{uuid.uuid4().hex}"
        # MERGE reads its source more than once; the query's state is computed once only.
        with persisted(frame):
            try:
                has_rows = self._check_keys(frame, batch)
                frame.createOrReplaceTempView(view)
                run(self._statement(view, frame.columns))
            finally:
                frame.sparkSession.catalog.dropTempView(view)
        return has_rows

    def _statement(self, view: str, columns: list[str]) -> str:
        names = [backquoted(column) for column in columns]
        # Null-safe: by ``=`` a null key would match no row, and each batch would insert another one.
        matches = " AND ".join(f"t.{key} <=> s.{key}" for key in map(backquoted, self.keys))
        values = ", ".join(f"{name} = s.{name}" for name in names)
        inserted = ", ".join(f"s.{name}" for name in names)
        clauses = (
            f"USING {view} s ON {matches}",
            f"WHEN MATCHED THEN UPDATE SET {values}",
            "WHEN NOT MATCHED THEN INSERT",
            f"({', '.join(names)}) VALUES ({inserted})",
        )
        return " ".join(("MERGE INTO", self.table, "t", *clauses))

    def _check_keys(self, frame: DataFrame, batch: int) -> bool:
        """Refuse duplicate keys: MERGE inserts duplicate new keys, and later refuses them."""
        counted = frame.groupBy(*map(backquoted, self.keys)).agg(F.count(F.lit(1)).alias(_COUNT))
        most = counted.orderBy(F.desc(_COUNT)).first()
        if most is not None and most[_COUNT] > 1:
            raise StreamFailed(
                "merge-keys",
                f"Batch {batch} has several rows with one key, and which of them counts is unknown",
                where=self.where,
                expected="one row for each value of " + ", ".join(self.keys),
                found=f"{most[_COUNT]} rows with {', '.join(f'{key}={most[key]!r}' for key in self.keys)}",
                hint="aggregate or deduplicate by the keys, or use all columns that make a row unique as keys",
            )
        return most is not None
