"""Batch functions of sinks: what Spark calls for each batch, and how an error of ours comes back through the JVM."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slackwater.core.errors import SlackwaterError
from slackwater.core.sink import WriteContext

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from slackwater.sinks.common.contract import WritesBatches


def backquoted(name: str) -> str:
    """A name as an expression of Spark has it, whatever characters are in it."""
    return "`" + name.replace("`", "``") + "`"


@contextmanager
def session_settings(session: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Set them in the query's own session, and unset them afterwards."""
    for name, value in values.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name in values:
            session.conf.unset(name)


@dataclass(frozen=True, slots=True)
class IntoTable:
    """``toTable`` names the table and starts the query in one step."""

    writer: DataStreamWriter
    table: str

    def start(self) -> StreamingQuery:
        """Create the table if it does not exist, and start the query."""
        return self.writer.toTable(self.table)


class BatchFailed(Exception):
    """One of our errors with its code in the text: the text is all that passes through the JVM."""

    def __init__(self, error: SlackwaterError) -> None:
        hint = f" hint: {error.hint}" if error.hint else ""
        # One line, because the code and the reason are read from a line of Spark's error (``OURS_IN_BATCH``).
        super().__init__(" ".join(f"[{error.code}] {error}{hint}".split()))


def batch_function(write: Callable[[DataFrame, int], None], context: WriteContext) -> Callable[[DataFrame, int], None]:
    """The function for ``foreachBatch``. PySpark calls it with the batch's DataFrame and its id.

    A run that has lost its lease fails before the batch is written, and before Spark commits it in the checkpoint.
    """

    def written(frame: DataFrame, batch: int) -> None:
        try:
            context.check_lease()
            write(frame, batch)
            context.check_lease()
        except SlackwaterError as error:
            # Not chained: the driver's exception can quote a whole row, and the error has what matters of it.
            raise BatchFailed(error) from None

    return written


class BatchFunctionSink:
    """What the sinks have in common that write each batch by a function: ``batch_writer`` returns it."""

    __slots__ = ()

    def attach(self: WritesBatches, writer: DataStreamWriter, context: WriteContext, /) -> DataStreamWriter:
        """Set the batch function on the writer."""
        return writer.foreachBatch(batch_function(self.batch_writer(context), context))


@contextmanager
def persisted(frame: DataFrame) -> Iterator[None]:
    """Compute the rows of a batch once for all that is done within the block, also where blocks are nested."""
    level = frame.storageLevel
    if level.useMemory or level.useDisk:
        yield  # Whoever persisted it uses it after this block.
        return
    frame.persist()
    try:
        yield
    finally:
        frame.unpersist()


def run_without_output(frame: DataFrame) -> None:
    """Run a batch that the output has already: left out, it would leave Spark's watermark behind."""
    frame.write.format("noop").mode("overwrite").save()
