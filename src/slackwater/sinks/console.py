"""Spark's console sink."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from slackwater.core.sink import CatalogueEntry, Delivery, WriteContext, WriterCalls
from slackwater.sinks.common.contract import OpaqueOutput, PlacelessSink, opaque_traits
from slackwater.sinks.common.problem import option_strings
from slackwater.sinks.common.registry import SinkKind

if TYPE_CHECKING:
    from pyspark.sql.streaming.readwriter import DataStreamWriter

CONSOLE_TRAITS = opaque_traits(
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


def open_console_output(_identity: Mapping[str, str]) -> OpaqueOutput:
    return OpaqueOutput("console", CONSOLE_TRAITS, None)


def recognise(calls: WriterCalls) -> Mapping[str, str] | None:
    return {"kind": "console"} if calls.format == "console" and not calls.function and not calls.table else None


SINK = SinkKind(
    recognise=recognise,
    opener=open_console_output,
    constructor=console,
    exports=("ConsoleSink",),
    entries=(CatalogueEntry("console", "console()", CONSOLE_TRAITS, rank=130),),
)
