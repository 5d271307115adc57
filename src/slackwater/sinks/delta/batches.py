"""Writes one batch into a Delta table, in one commit that carries the batch's number."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slackwater.errors import StreamFailed
from slackwater.model.sink import WriteContext
from slackwater.sinks.batch_function import persisted, run_without_output
from slackwater.sinks.delta.output import DeltaOutput, app_of
from slackwater.sinks.delta.schema import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SETTINGS = "spark.databricks.delta.write."
"""MERGE takes the transaction from the session, where a write takes it from its options."""
_COUNT = "slackwater_rows"


@dataclass(frozen=True, slots=True)
class BatchWriter:
    """The batch function of one run."""

    location: str
    keys: tuple[str, ...]
    options: Mapping[str, str]
    context: WriteContext

    def write(self, frame: DataFrame, batch: int) -> None:
        """Write the batch, unless the table has it."""
        if batch <= self.context.planned and DeltaOutput(self.location).last_written() >= batch:
            # Delta would skip it without reading its rows, and Spark's watermark would miss those of this batch.
            run_without_output(frame)
        elif self.keys:
            self._merge(frame, batch)
        else:
            mode = "overwrite" if self.context.output_mode == "complete" else "append"
            writer = frame.write.format("delta").mode(mode).options(**self.options, **self._transaction(batch))
            if self.context.partition_by:
                writer = writer.partitionBy(*self.context.partition_by)
            writer.save(self.location)

    def _transaction(self, batch: int) -> dict[str, str]:
        return {"txnAppId": app_of(self.context.stream_id), "txnVersion": str(batch)}

    def _merge(self, frame: DataFrame, batch: int) -> None:
        view = f"slackwater_{uuid.uuid4().hex}"
        # MERGE reads its source more than once; the query's state is computed once only.
        with persisted(frame):
            try:
                self._check_keys(frame, batch)
                frame.createOrReplaceTempView(view)
                with _settings(frame.sparkSession, self._transaction(batch)):
                    frame.sparkSession.sql(self._statement(view, frame.columns))
            finally:
                frame.sparkSession.catalog.dropTempView(view)

    def _statement(self, view: str, columns: list[str]) -> str:
        names = [_quoted(column) for column in columns]
        matches = " AND ".join(f"t.{key} <=> s.{key}" for key in map(_quoted, self.keys))
        values = ", ".join(f"{name} = s.{name}" for name in names)
        inserted = ", ".join(f"s.{name}" for name in names)
        clauses = (
            f"USING {view} s ON {matches}",
            f"WHEN MATCHED THEN UPDATE SET {values}",
            "WHEN NOT MATCHED THEN INSERT",
            f"({', '.join(names)}) VALUES ({inserted})",
        )
        return " ".join(("MERGE INTO", quoted(self.location), "t", *clauses))

    def _check_keys(self, frame: DataFrame, batch: int) -> None:
        """MERGE would insert several new rows with one key, and refuse them once the key is there."""
        from pyspark.sql import functions as F  # noqa: PLC0415 - heavy; only a run pays for it

        counted = frame.groupBy(*map(_quoted, self.keys)).agg(F.count(F.lit(1)).alias(_COUNT))
        twice = counted.where(f"{_COUNT} > 1").first()
        if twice is not None:
            raise StreamFailed(
                "merge-keys",
                f"Batch {batch} has several rows with one key, and which of them counts is unknown",
                where=self.location,
                expected="one row for each value of " + ", ".join(self.keys),
                found=f"{twice[_COUNT]} rows with {', '.join(f'{key}={twice[key]!r}' for key in self.keys)}",
                hint="aggregate or deduplicate by the keys, or use all columns that make a row unique as keys",
            )


def _quoted(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"


@contextmanager
def _settings(session: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Set the transaction in the query's own session for one statement."""
    for name, value in values.items():
        session.conf.set(_SETTINGS + name, value)
    try:
        yield
    finally:
        for name in values:
            session.conf.unset(_SETTINGS + name)
