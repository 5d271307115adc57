"""Spark's memory sink: a table in the driver's memory."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slackwater.core.errors import PipelineError, Refused
from slackwater.core.sink import CatalogueEntry, Delivery, WriteContext, WriterCalls
from slackwater.sinks.common.contract import OpaqueOutput, Sink, opaque_traits
from slackwater.sinks.common.problem import is_text, refuse_partitions
from slackwater.sinks.common.registry import SinkKind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

MEMORY_TRAITS = opaque_traits(
    Delivery("none", "the table is in the driver's memory; after a restart it is empty, or refused in append mode"),
    one_writer=True,
    continuous=True,
)
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


@dataclass(frozen=True, slots=True)
class MemorySink(Sink):
    name: str

    kind = "memory"
    traits = MEMORY_TRAITS
    output_modes = ("append", "complete")

    def identity(self) -> Mapping[str, str]:
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
    """Spark's memory sink: a temporary view ``name``, within one run only. Raises PipelineError for another name."""
    if not is_text(name) or not NAME.fullmatch(name):
        raise PipelineError(
            "memory-name",
            "The memory sink cannot use this name for its table",
            expected="letters, digits and '_', beginning with a letter or '_', at most 100",
            found=repr(name),
        )
    return MemorySink(name)


def open_memory_output(identity: Mapping[str, str]) -> OpaqueOutput:
    return OpaqueOutput("memory", MEMORY_TRAITS, f"memory table {identity.get('name')}")


def recognise(calls: WriterCalls) -> Mapping[str, str] | None:
    """The identity of a writer's output; the table is named after its query."""
    if calls.format != "memory" or calls.function or calls.table:
        return None
    return {"kind": "memory", "name": calls.query or ""}


SINK = SinkKind(
    recognise=recognise,
    opener=open_memory_output,
    constructor=memory,
    exports=("MemorySink",),
    entries=(CatalogueEntry("memory", "memory(name)", MEMORY_TRAITS, ("append", "complete"), rank=140),),
)
