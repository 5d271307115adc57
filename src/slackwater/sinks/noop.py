"""Spark's no-op sink: computes every row and discards it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slackwater.model.sink import Delivery, WriteContext
from slackwater.sinks.partitioning import refuse_partitions
from slackwater.sinks.silent import SilentOutput, silent_traits

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

NOOP_TRAITS = silent_traits(Delivery("none", "every row is discarded"), one_writer=False)


@dataclass(frozen=True, slots=True)
class NoopSink:
    """No output: for measurements."""

    kind = "noop"
    traits = NOOP_TRAITS
    output_modes = ("append", "update", "complete")
    connectors = ()

    def identity(self) -> Mapping[str, str]:
        """The kind alone."""
        return {"kind": self.kind}

    def check(self, _frame: DataFrame, context: WriteContext, /) -> None:
        """Check that there is no ``partition_by``."""
        refuse_partitions(self.kind, context)

    def attach(self, writer: DataStreamWriter, _context: WriteContext, /) -> DataStreamWriter:
        """Set the format on the writer."""
        return writer.format("noop")


def noop() -> NoopSink:
    """Spark's no-op sink."""
    return NoopSink()


def open_noop_output(_identity: Mapping[str, str]) -> SilentOutput:
    """No output: without a place."""
    return SilentOutput("noop", NOOP_TRAITS, None)
