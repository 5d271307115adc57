"""Spark's own sinks whose output cannot be read back: console, foreach, memory and no-op."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from slackwater.core.errors import PipelineError, Refused
from slackwater.core.sink import CatalogueEntry, Delivery, Identity, Traits, WriteContext, WriterCalls
from slackwater.sinks.common.contract import OpaqueOutput, PlacelessSink, Sink
from slackwater.sinks.common.problem import is_text, option_strings, refuse_partitions
from slackwater.sinks.common.registry import SinkKind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row
    from pyspark.sql._typing import SupportsProcess
    from pyspark.sql.streaming.readwriter import DataStreamWriter


def _placeless(kind: str, traits: Traits, _identity: Identity) -> OpaqueOutput:
    return OpaqueOutput(kind, traits, None)


CONSOLE_TRAITS = Traits(
    Delivery("at-least-once", "an interrupted batch is printed again"),
    one_writer=False,
    continuous=True,
    real_time=True,
)


@dataclass(frozen=True, slots=True)
class ConsoleSink(PlacelessSink):
    options: Mapping[str, str] = field(default_factory=dict)

    kind = "console"
    traits = CONSOLE_TRAITS

    def attach(self, writer: DataStreamWriter, _context: WriteContext, /) -> DataStreamWriter:
        return writer.format("console").options(**self.options)


def console(**options: object) -> ConsoleSink:
    """Spark's console sink; ``options`` are its own, ``numRows`` and ``truncate``. Raises PipelineError for others."""
    return ConsoleSink(option_strings(options, ("checkpointlocation",)))


CONSOLE = SinkKind(
    opener=partial(_placeless, "console", CONSOLE_TRAITS),
    constructor=console,
    exports=("ConsoleSink",),
    entries=(CatalogueEntry("console", "console()", CONSOLE_TRAITS, rank=130),),
)

FOREACH_TRAITS = Traits(
    Delivery(
        "at-least-once", "the function gets the rows of an interrupted batch, and of a repeated task, a second time"
    ),
    one_writer=False,
    real_time=True,
)


@dataclass(frozen=True, slots=True)
class ForeachSink(PlacelessSink):
    function: Callable[[Row], Any] | SupportsProcess

    kind = "foreach"
    traits = FOREACH_TRAITS

    @property
    def called(self) -> object:
        return self.function

    def attach(self, writer: DataStreamWriter, _context: WriteContext, /) -> DataStreamWriter:
        """Attach the function; functions of the pipeline file are pickled by value."""
        return writer.foreach(self.function)


def foreach(function: Callable[[Row], Any] | SupportsProcess) -> ForeachSink:
    """Spark's foreach sink: at least once.

    ``function`` is called with each row on the executors. An object has ``process(row)``, and may have
    ``open(partition_id, batch_id)``, which returns whether the rows are wanted, and ``close(error)``.
    Raises PipelineError for anything else.
    """
    usable = callable(function) or callable(getattr(function, "process", None))
    if isinstance(function, type) or not usable:
        raise PipelineError(
            "sink-function",
            "The foreach sink cannot use this value",
            expected="a function of one row, or an object with process(row) and, if needed, open and close",
            found=repr(function),
            hint="give an instance of the class" if isinstance(function, type) else None,
        )
    return ForeachSink(function)


def recognise_foreach(calls: WriterCalls) -> Identity | None:
    return {"kind": "foreach"} if calls.function == "foreach" else None


FOREACH = SinkKind(
    recognise=recognise_foreach,
    opener=partial(_placeless, "foreach", FOREACH_TRAITS),
    constructor=foreach,
    exports=("ForeachSink",),
    entries=(CatalogueEntry("foreach", "foreach(function)", FOREACH_TRAITS, rank=120),),
)

MEMORY_TRAITS = Traits(
    Delivery("none", "the table is in the driver's memory; after a restart it is empty, or refused in append mode"),
    one_writer=True,
    continuous=True,
)
MEMORY_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


@dataclass(frozen=True, slots=True)
class MemorySink(Sink):
    name: str

    kind = "memory"
    traits = MEMORY_TRAITS
    output_modes = ("append", "complete")

    def identity(self) -> Identity:
        return {"kind": self.kind, "name": self.name}

    def check(self, _frame: DataFrame, context: WriteContext, /) -> None:
        """Raises Refused if earlier rows would be missing.

        Spark starts a memory sink over an existing checkpoint only in complete mode, which rewrites the table.
        """
        refuse_partitions(self.kind, context)
        if context.planned >= 0 and context.output_mode != "complete":
            raise Refused(
                "memory-restart",
                f"The memory sink of stream {context.stream} cannot be restarted in {context.output_mode} mode: its "
                f"rows up to batch {context.planned} were in the memory of the run that has ended",
                expected="a new stream, or output mode complete, which writes the whole table again",
                found=f"a checkpoint that has planned batch {context.planned}",
                hint="use a sink that keeps its rows, or give the stream a new name to process everything again",
            )

    def attach(self, writer: DataStreamWriter, _context: WriteContext, /) -> DataStreamWriter:
        """Set the query's name, which Spark makes the table's."""
        return writer.format("memory").queryName(self.name)


def memory(name: str) -> MemorySink:
    """Spark's memory sink: a temporary view ``name``, within one run only. Raises PipelineError for any other name."""
    if not is_text(name) or not MEMORY_NAME.fullmatch(name):
        raise PipelineError(
            "memory-name",
            "The memory sink cannot use this name for its table",
            expected="letters, digits and '_', beginning with a letter or '_', at most 100",
            found=repr(name),
        )
    return MemorySink(name)


def open_memory_output(identity: Identity) -> OpaqueOutput:
    return OpaqueOutput("memory", MEMORY_TRAITS, f"memory table {identity.get('name')}")


def recognise_memory(calls: WriterCalls) -> Identity | None:
    """The identity of a writer's output; the table is named after its query."""
    if calls.format != "memory" or calls.function or calls.table:
        return None
    return {"kind": "memory", "name": calls.query or ""}


MEMORY = SinkKind(
    recognise=recognise_memory,
    opener=open_memory_output,
    constructor=memory,
    exports=("MemorySink",),
    entries=(CatalogueEntry("memory", "memory(name)", MEMORY_TRAITS, ("append", "complete"), rank=140),),
)

NOOP_TRAITS = Traits(Delivery("none", "every row is discarded"), one_writer=False)


class NoopSink(PlacelessSink):
    """Discards rows, for measurements."""

    kind = "noop"
    traits = NOOP_TRAITS

    def attach(self, writer: DataStreamWriter, _context: WriteContext, /) -> DataStreamWriter:
        return writer.format("noop")


def noop() -> NoopSink:
    """Spark's no-op sink."""
    return NoopSink()


NOOP = SinkKind(
    opener=partial(_placeless, "noop", NOOP_TRAITS),
    constructor=noop,
    exports=("NoopSink",),
    entries=(CatalogueEntry("noop", "noop()", NOOP_TRAITS, rank=150),),
)
