"""Spark's foreach sink: a function or object gets every row on the executors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slackwater.core.errors import PipelineError
from slackwater.core.sink import CatalogueEntry, Delivery, WriteContext, WriterCalls
from slackwater.sinks.common.contract import OpaqueOutput, PlacelessSink, opaque_traits
from slackwater.sinks.common.registry import SinkKind

if TYPE_CHECKING:
    from pyspark.sql import Row
    from pyspark.sql._typing import SupportsProcess
    from pyspark.sql.streaming.readwriter import DataStreamWriter

FOREACH_TRAITS = opaque_traits(
    Delivery(
        "at-least-once",
        "the function gets the rows of an interrupted batch, and of a repeated task, a second time",
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
            "The foreach sink cannot call this",
            expected="a function of one row, or an object with process(row) and, if needed, open and close",
            found=repr(function),
            hint="give an instance of the class" if isinstance(function, type) else None,
        )
    return ForeachSink(function)


def open_foreach_output(_identity: Mapping[str, str]) -> OpaqueOutput:
    return OpaqueOutput("foreach", FOREACH_TRAITS, None)


def recognise(calls: WriterCalls) -> Mapping[str, str] | None:
    return {"kind": "foreach"} if calls.function == "foreach" else None


SINK = SinkKind(
    recognise=recognise,
    opener=open_foreach_output,
    constructor=foreach,
    exports=("ForeachSink",),
    entries=(CatalogueEntry("foreach", "foreach(function)", FOREACH_TRAITS, rank=120),),
)
