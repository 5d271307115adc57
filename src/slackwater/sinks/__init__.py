"""Sinks: how Spark writes each, what it guarantees, and how its output is read, cut and restored without a JVM.

What was written last is read from the output itself, never from the checkpoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slackwater.sinks.files.sink import FilesSink, files
from slackwater.sinks.foreach_batch.batch import Batch
from slackwater.sinks.foreach_batch.sink import ForeachBatchSink, foreach_batch
from slackwater.sinks.jdbc.sink import JdbcSink, jdbc
from slackwater.sinks.postgres.sink import PostgresSink, postgres

__all__ = [
    "Batch",
    "FilesSink",
    "ForeachBatchSink",
    "JdbcSink",
    "PostgresSink",
    "files",
    "foreach_batch",
    "jdbc",
    "postgres",
]

SINKS = ("files", "foreach_batch", "jdbc", "postgres")
"""The functions of this module that make a sink."""

# Type checkers would take any name for a sink with this function in sight.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from slackwater.errors import SinkUnknown  # noqa: PLC0415 - only a mistake needs it

        raise SinkUnknown(
            "sink-unknown",
            f"Slackwater has no sink {name}",
            expected="one of " + ", ".join(f"slackwater.sinks.{sink}" for sink in SINKS),
            found=f"slackwater.sinks.{name}",
            hint='use slackwater.sinks.files("parquet", PATH); a query with another sink can be run without Slackwater '
            "and recorded by slackwater.watch(spark, ...)",
        )
