"""Writes a batch into a Delta table, in one commit with the batch's number."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException

from slackwater.core.errors import StreamFailed
from slackwater.core.sink import WriteContext
from slackwater.sinks.common.batch_function import run_without_output, session_settings
from slackwater.sinks.common.merging import Merge
from slackwater.sinks.delta.output import DeltaOutput, app_of
from slackwater.sinks.delta.schema import table_in_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SETTINGS = "spark.databricks.delta.write."
"""The prefix of settings with which MERGE takes the transaction from the session; a write takes it from its options."""
_REFUSED = re.compile(r"AnalysisException: (?P<message>.+)")


@dataclass(frozen=True, slots=True)
class BatchWriter:
    location: str
    keys: tuple[str, ...]
    options: Mapping[str, str]
    context: WriteContext

    def write(self, frame: DataFrame, batch: int) -> None:
        """Write a batch unless it is in the table. Raises StreamFailed if the table was changed meanwhile."""
        output = DeltaOutput(self.location)
        if not output.exists:
            # Delta would create another table with the rows of this batch only.
            raise self._changed("no Delta table")
        # Only a batch that was planned before this run can be in the table, so that newer ones need no read of the log.
        if batch <= self.context.planned and output.last_written() >= batch:
            # Delta would skip it without reading its rows, and Spark's watermark would miss those of this batch.
            run_without_output(frame)
            return
        try:
            self._merge(frame, batch) if self.keys else self._save(frame, batch)
        except (AnalysisException, Py4JJavaError) as error:
            refusal = _refusal(error)
            if refusal is None:
                raise
            raise self._changed(refusal) from error

    def _save(self, frame: DataFrame, batch: int) -> None:
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

        Merge(table_in_sql(self.location), self.keys, self.location).write(frame, batch, run)

    def _changed(self, found: str) -> StreamFailed:
        return StreamFailed(
            "sink-table-changed",
            "The Delta table is not as it was when the query started",
            where=self.location,
            found=found,
            hint="put the table or its columns back, or change the query, and run the stream again",
        )


def _refusal(error: BaseException | None) -> str | None:
    """The refusal in an exception, ``None`` for a different error.

    PySpark fails to convert Delta's errors, whose class Spark does not know: then it is in the context.
    """
    while error is not None:
        found = _REFUSED.search(f"{type(error).__name__}: {error}")
        if found is not None:
            return found["message"]
        error = error.__context__
    return None
