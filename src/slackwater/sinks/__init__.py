"""Sinks: how Spark writes each, its guarantees, and how its output is read, cut and restored without a JVM.

The newest batch is read from the output, never from the checkpoint. Public names are imported lazily.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING

# For type checkers and editors only, which cannot ask the registry; a kind that is not listed here works all the same.
if TYPE_CHECKING:
    from slackwater.sinks.all_of import AllOfSink as AllOfSink
    from slackwater.sinks.all_of import all_of as all_of
    from slackwater.sinks.delta.sink import DeltaSink as DeltaSink
    from slackwater.sinks.delta.sink import delta as delta
    from slackwater.sinks.files.sink import FilesSink as FilesSink
    from slackwater.sinks.files.sink import files as files
    from slackwater.sinks.foreach_batch.sink import Batch as Batch
    from slackwater.sinks.foreach_batch.sink import ForeachBatchSink as ForeachBatchSink
    from slackwater.sinks.foreach_batch.sink import foreach_batch as foreach_batch
    from slackwater.sinks.iceberg.sink import IcebergSink as IcebergSink
    from slackwater.sinks.iceberg.sink import iceberg as iceberg
    from slackwater.sinks.jdbc.sink import JdbcSink as JdbcSink
    from slackwater.sinks.jdbc.sink import jdbc as jdbc
    from slackwater.sinks.kafka.sink import ExactlyOnceKafkaSink as ExactlyOnceKafkaSink
    from slackwater.sinks.kafka.sink import KafkaSink as KafkaSink
    from slackwater.sinks.kafka.sink import kafka as kafka
    from slackwater.sinks.postgres.sink import PostgresSink as PostgresSink
    from slackwater.sinks.postgres.sink import postgres as postgres
    from slackwater.sinks.spark_only import ConsoleSink as ConsoleSink
    from slackwater.sinks.spark_only import ForeachSink as ForeachSink
    from slackwater.sinks.spark_only import MemorySink as MemorySink
    from slackwater.sinks.spark_only import NoopSink as NoopSink
    from slackwater.sinks.spark_only import console as console
    from slackwater.sinks.spark_only import foreach as foreach
    from slackwater.sinks.spark_only import memory as memory
    from slackwater.sinks.spark_only import noop as noop
    from slackwater.sinks.table import TableSink as TableSink
    from slackwater.sinks.table import table as table

_SHARED = "common"


class _Sinks(ModuleType):
    """The type of this package: ``sinks.files`` stays the function after ``slackwater.sinks.files`` is imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if name == _SHARED or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Sinks

# Type checkers would take any name for a sink with this function in sight.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        from slackwater.sinks.common.registry import public, public_names  # noqa: PLC0415 - it is in this package

        if name == "__all__":
            return public_names()
        # Python asks for a module of the package, too, before it imports it.
        if name.startswith("_") or name == _SHARED:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = public(name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__getattr__("__all__")})
