"""Spark's no-op sink: computes and discards every row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from slackwater.core.sink import CatalogueEntry, Delivery, WriteContext
from slackwater.sinks.common.contract import OpaqueOutput, PlacelessSink, opaque_traits
from slackwater.sinks.common.registry import SinkKind

if TYPE_CHECKING:
    from pyspark.sql.streaming.readwriter import DataStreamWriter

NOOP_TRAITS = opaque_traits(Delivery("none", "every row is discarded"), one_writer=False)


class NoopSink(PlacelessSink):
    """Discards rows, for measurements."""

    kind = "noop"
    traits = NOOP_TRAITS

    def attach(self, writer: DataStreamWriter, _context: WriteContext, /) -> DataStreamWriter:
        return writer.format("noop")


def noop() -> NoopSink:
    """Spark's no-op sink."""
    return NoopSink()


def open_noop_output(_identity: Mapping[str, str]) -> OpaqueOutput:
    return OpaqueOutput("noop", NOOP_TRAITS, None)


SINK = SinkKind(
    opener=open_noop_output,
    constructor=noop,
    exports=("NoopSink",),
    entries=(CatalogueEntry("noop", "noop()", NOOP_TRAITS, rank=150),),
)
