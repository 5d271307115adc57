"""Batch functions of sinks, and how Slackwater's errors come back through the JVM."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from slackwater.core.errors import SlackwaterError
from slackwater.core.sink import WriteContext

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


WriteBatch: TypeAlias = "Callable[[DataFrame, int], None]"
"""Writes a batch, as a function for ``foreachBatch``."""


def backquoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@contextmanager
def session_settings(session: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    for name, value in values.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name in values:
            session.conf.unset(name)


class BatchFailed(Exception):
    """A Slackwater error; only its text, which includes the code, passes through the JVM."""

    def __init__(self, error: SlackwaterError) -> None:
        hint = f" hint: {error.hint}" if error.hint else ""
        # One line, because the code and the reason are read from a line of Spark's error (``OURS_IN_BATCH``).
        super().__init__(" ".join(f"[{error.code}] {error}{hint}".split()))


def batch_function(write: WriteBatch, context: WriteContext) -> WriteBatch:
    """The function for ``foreachBatch``.

    Without its lease a run fails before writing the batch, and before Spark commits it.
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


@contextmanager
def persisted(frame: DataFrame) -> Iterator[None]:
    """Compute a batch's rows once for the block; blocks may be nested."""
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
    """Run the batch without output: skipping it would leave Spark's watermark behind."""
    frame.write.format("noop").mode("overwrite").save()
