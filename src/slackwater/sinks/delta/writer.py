"""Creates and checks a Delta table, and writes each batch in one commit with the batch's number."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException

from slackwater.core.errors import PipelineError, StreamFailed
from slackwater.core.sink import WriteContext
from slackwater.sinks.common import staging
from slackwater.sinks.common.batch_function import backquoted, run_without_output, session_settings
from slackwater.sinks.common.directory import OWNER_FILE
from slackwater.sinks.common.spark_tables import found_in, merge, table_schema
from slackwater.sinks.delta.log import FOLDER
from slackwater.sinks.delta.sink import DeltaOutput, DeltaSink, app_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


TXN_RETENTION = "delta.setTransactionRetentionDuration"


_SETTINGS = "spark.databricks.delta.write."
"""The prefix of settings with which MERGE takes the transaction from the session; a write takes it from its options."""
_REFUSED = re.compile(r"AnalysisException: (?P<message>.+)")


class DeltaSparkTable:
    """A sink's table for Spark and the query."""

    def __init__(self, sink: DeltaSink) -> None:
        self.location = sink.location
        self.keys = sink.keys
        self.options = sink.options

    def create(self, frame: DataFrame, partition_by: tuple[str, ...]) -> None:
        names = found_in(self.location, {OWNER_FILE, FOLDER, staging.MARK})
        if names:
            raise _foreign(self.location, ", ".join(names[:3]))
        empty = frame.sparkSession.createDataFrame([], table_schema(frame.schema))
        # ``ignore``: a table that exists stays as it is, and ``check`` compares its columns.
        writer = empty.write.format("delta").mode("ignore").options(**self.options)
        if partition_by:
            writer = writer.partitionBy(*partition_by)
        try:
            writer.save(self.location)
        except PySparkException as error:
            raise PipelineError(
                "delta-create",
                f"Spark cannot create the Delta table: {str(error).splitlines()[0]}",
                where=self.location,
                hint="name the columns so that Delta accepts them, and choose a directory that Spark may write to",
            ) from error

    def check(self, frame: DataFrame, partition_by: tuple[str, ...]) -> None:
        """Raises PipelineError unless columns, types and partitions match."""
        session = frame.sparkSession
        detail = session.sql(f"DESCRIBE DETAIL {table_in_sql(self.location)}").first()
        if detail is None:
            raise _foreign(self.location, "no description of a table")
        retention = (detail["properties"] or {}).get(TXN_RETENTION)
        if retention:
            raise PipelineError(
                "delta-property",
                f"The Delta table forgets which batches were written, because its property {TXN_RETENTION} is set",
                where=self.location,
                expected="no value",
                found=str(retention),
                hint=f"ALTER TABLE {table_in_sql(self.location)} UNSET TBLPROPERTIES ('{TXN_RETENTION}')",
            )
        partitions = tuple(detail["partitionColumns"])
        if partition_by and partition_by != partitions:
            raise _rejected(self.location, "partitions", ", ".join(partitions) or "none", ", ".join(partition_by))
        absent = [key for key in self.keys if key not in frame.columns]
        if absent:
            columns = "columns of the query: " + ", ".join(frame.columns)
            raise _rejected(self.location, "keys", columns, ", ".join(absent))
        if any(name.lower() in {"mergeschema", "overwriteschema"} for name in self.options):
            return
        table = session.read.format("delta").load(self.location).schema
        known = {field.name.lower(): field.dataType.simpleString() for field in table}
        for field in frame.schema:
            found = field.dataType.simpleString()
            expected = known.get(field.name.lower())
            if expected is None:
                raise _rejected(self.location, "columns", ", ".join(sorted(known)), f"{field.name} {found}")
            if found.lower() != expected.lower():
                raise _rejected(self.location, "types", f"{field.name} {expected}", f"{field.name} {found}")

    def write(self, context: WriteContext, frame: DataFrame, batch: int) -> None:
        """Write a batch unless it is in the table. Raises StreamFailed if the table was changed meanwhile."""
        output = DeltaOutput(self.location)
        if not output.exists:
            # Delta would create another table with the rows of this batch only.
            raise self._changed("no Delta table")
        # Only a batch that was planned before this run can be in the table, so that newer ones need no read of the log.
        if batch <= context.planned and output.last_written() >= batch:
            # Delta would skip it without reading its rows, and Spark's watermark would miss those of this batch.
            run_without_output(frame)
            return
        session = frame.sparkSession
        transaction = {"txnAppId": app_of(context.stream_id), "txnVersion": str(batch)}

        def run(statement: str) -> None:
            with session_settings(session, {_SETTINGS + name: value for name, value in transaction.items()}):
                session.sql(statement)

        try:
            if self.keys:
                merge(frame, batch, run, table=table_in_sql(self.location), keys=self.keys, where=self.location)
                return
            mode = "overwrite" if context.output_mode == "complete" else "append"
            writer = frame.write.format("delta").mode(mode).options(**self.options, **transaction)
            if context.partition_by:
                writer = writer.partitionBy(*context.partition_by)
            writer.save(self.location)
        except (AnalysisException, Py4JJavaError) as error:
            # PySpark fails to convert Delta's errors, whose class Spark does not know: then it is in the context.
            cause: BaseException | None = error
            while cause is not None:
                refusal = _REFUSED.search(f"{type(cause).__name__}: {cause}")
                if refusal is not None:
                    raise self._changed(refusal["message"]) from error
                cause = cause.__context__
            raise

    def _changed(self, found: str) -> StreamFailed:
        return StreamFailed(
            "sink-table-changed",
            "The Delta table is not as it was when the query started",
            where=self.location,
            found=found,
            hint="restore the table or its columns, or change the query, and run the stream again",
        )


def table_in_sql(location: str) -> str:
    return f"delta.{backquoted(location)}"


def _foreign(location: str, found: str) -> PipelineError:
    return PipelineError(
        "delta-place",
        "The directory of the Delta sink contains something other than a Delta table",
        where=location,
        expected="a Delta table, an empty directory, or none",
        found=found,
        hint="give the sink a directory of its own",
    )


def _rejected(location: str, what: str, expected: str, found: str) -> PipelineError:
    return PipelineError(
        "delta-schema",
        f"The Delta table does not accept the rows of the query: other {what}",
        where=location,
        expected=expected,
        found=found,
        hint="change the query, or the table with ALTER TABLE; sinks.delta(path, mergeSchema=True) adds new columns",
    )
