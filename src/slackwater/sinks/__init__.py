"""Sinks: how Spark writes each, what it guarantees, and how its output is read, cut and restored without a JVM.

What was written last is read from the output itself, never from the checkpoint. Each public name brings its module when
it is first used: most commands need none of them.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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

_MODULES = {
    "AllOfSink": "all_of.sink",
    "Batch": "foreach_batch.batch",
    "ConsoleSink": "console",
    "DeltaSink": "delta.sink",
    "ExactlyOnceKafkaSink": "kafka.sink",
    "FilesSink": "files.sink",
    "ForeachBatchSink": "foreach_batch.sink",
    "ForeachSink": "foreach",
    "IcebergSink": "iceberg.sink",
    "JdbcSink": "jdbc.sink",
    "KafkaSink": "kafka.sink",
    "MemorySink": "memory",
    "NoopSink": "noop",
    "PostgresSink": "postgres.sink",
    "TableSink": "table",
    "all_of": "all_of.sink",
    "console": "console",
    "delta": "delta.sink",
    "files": "files.sink",
    "foreach": "foreach",
    "foreach_batch": "foreach_batch.sink",
    "iceberg": "iceberg.sink",
    "jdbc": "jdbc.sink",
    "kafka": "kafka.sink",
    "memory": "memory",
    "noop": "noop",
    "postgres": "postgres.sink",
    "table": "table",
}


class _Sinks(ModuleType):
    """This package. ``sinks.files`` is the function, also once its module ``slackwater.sinks.files`` was imported."""

    def __setattr__(self, name: str, value: object) -> None:
        """Called by Python with each module of the package that it has imported."""
        if name not in _MODULES or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Sinks

# Type checkers would take any name for a sink with this function in sight.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name in _MODULES:
            value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
            return value
        # Python asks for a module of the package, too, before it imports it.
        if name.startswith("_") or find_spec(f"{__name__}.{name}") is not None:
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


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
