"""Sinks: how Spark writes each, what it guarantees, and how its output is read, cut and restored without a JVM.

What was written last is read from the output itself, never from the checkpoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slackwater.sinks.all_of.sink import AllOfSink, all_of
from slackwater.sinks.console import ConsoleSink, console
from slackwater.sinks.delta.sink import DeltaSink, delta
from slackwater.sinks.files.sink import FilesSink, files
from slackwater.sinks.foreach import ForeachSink, foreach
from slackwater.sinks.foreach_batch.batch import Batch
from slackwater.sinks.foreach_batch.sink import ForeachBatchSink, foreach_batch
from slackwater.sinks.iceberg.sink import IcebergSink, iceberg
from slackwater.sinks.jdbc.sink import JdbcSink, jdbc
from slackwater.sinks.kafka.sink import ExactlyOnceKafkaSink, KafkaSink, kafka
from slackwater.sinks.memory import MemorySink, memory
from slackwater.sinks.noop import NoopSink, noop
from slackwater.sinks.postgres.sink import PostgresSink, postgres
from slackwater.sinks.table import TableSink, table

__all__ = [
    "AllOfSink",
    "Batch",
    "ConsoleSink",
    "DeltaSink",
    "ExactlyOnceKafkaSink",
    "FilesSink",
    "ForeachBatchSink",
    "ForeachSink",
    "IcebergSink",
    "JdbcSink",
    "KafkaSink",
    "MemorySink",
    "NoopSink",
    "PostgresSink",
    "TableSink",
    "all_of",
    "console",
    "delta",
    "files",
    "foreach",
    "foreach_batch",
    "iceberg",
    "jdbc",
    "kafka",
    "memory",
    "noop",
    "postgres",
    "table",
]

# Type checkers would take any name for a sink with this function in sight.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from slackwater.errors import SinkUnknown  # noqa: PLC0415 - only a mistake needs it
        from slackwater.sinks.catalogue import names  # noqa: PLC0415

        raise SinkUnknown(
            "sink-unknown",
            f"Slackwater has no sink {name}",
            expected="one of " + ", ".join(f"slackwater.sinks.{sink}" for sink in names()),
            found=f"slackwater.sinks.{name}",
            hint="slackwater sinks lists them with their guarantees; a query with another sink can be run without "
            "Slackwater and recorded by slackwater.watch(spark, ...)",
        )
