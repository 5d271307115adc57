"""Writes one batch into a Delta table, in one commit that carries the batch's number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slackwater.model.sink import WriteContext
from slackwater.sinks.batch_function import run_without_output
from slackwater.sinks.delta.output import DeltaOutput, app_of
from slackwater.sinks.delta.schema import quoted
from slackwater.sinks.merging import Merge
from slackwater.sinks.session_settings import session_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SETTINGS = "spark.databricks.delta.write."
"""MERGE takes the transaction from the session, where a write takes it from its options."""


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
        session = frame.sparkSession
        transaction = {_SETTINGS + name: value for name, value in self._transaction(batch).items()}

        def run(statement: str) -> None:
            with session_settings(session, transaction):
                session.sql(statement)

        Merge(quoted(self.location), self.keys, self.location).write(frame, batch, run)
