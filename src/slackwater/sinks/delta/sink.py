"""The Delta sink.

Always a batch function, never Spark's native sink, which numbers transactions by query id. The query id is lost with
the checkpoint, so the next query would write batch 0 again and double its rows (docs/decisions/0110). Here the number
line is the stream's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from slackwater.core.sink import Traits, WriteContext
from slackwater.sinks.common.contract import Sink
from slackwater.sinks.common.directory import absolute, directory
from slackwater.sinks.common.options import key_columns, option_strings, refuse_with_keys
from slackwater.sinks.common.staging import staging_of
from slackwater.sinks.delta.output import DELTA_TRAITS, DeltaOutput
from slackwater.sinks.delta.table import require_library

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from slackwater.sinks.delta.writer import DeltaSparkTable

RESERVED_OPTIONS = frozenset({"path", "checkpointlocation", "txnappid", "txnversion", "replacewhere"})


@dataclass(frozen=True, slots=True)
class DeltaSink(Sink):
    """With ``keys``, rows replace equal keys; ``options`` are Delta's own."""

    path: str
    keys: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)

    kind = "delta"
    creates_output = True
    connectors = ("delta",)

    @property
    def traits(self) -> Traits:
        return DELTA_TRAITS

    @property
    def output_modes(self) -> tuple[str, ...]:
        """The supported modes: without keys an update has no target row."""
        return ("append", "update") if self.keys else ("append", "complete")

    @property
    def location(self) -> str:
        return absolute(self.path)

    def identity(self) -> Mapping[str, str]:
        return {"kind": self.kind, "path": self.location}

    def staged(self, operation: str, /) -> DeltaSink:
        return replace(self, path=str(staging_of(self.location, operation).folder))

    def create_output(self, frame: DataFrame, partition_by: tuple[str, ...], /) -> None:
        if not DeltaOutput(self.location).exists:
            self._spark_table.create(frame, partition_by)

    def check(self, frame: DataFrame, context: WriteContext, /) -> None:
        """Raises PipelineError if rows do not fit, EnvironmentMissing without ``deltalake``."""
        require_library()
        self.create_output(frame, context.partition_by)
        self._spark_table.check(frame, context.partition_by)

    def batch_writer(self, context: WriteContext, /) -> Callable[[DataFrame, int], None]:
        from slackwater.sinks.delta.writer import DeltaWriter  # noqa: PLC0415 - heavy; only a run pays for it

        return DeltaWriter(self.location, self.keys, self.options, context).write

    @property
    def _spark_table(self) -> DeltaSparkTable:
        from slackwater.sinks.delta.writer import DeltaSparkTable  # noqa: PLC0415 - heavy; only a run pays for it

        return DeltaSparkTable(self.location, self.keys, self.options)


def delta(path: str | os.PathLike[str], *, keys: str | Iterable[str] = (), **options: object) -> DeltaSink:
    """A Delta table, written exactly once: append and complete, or, with ``keys``, append and update by MERGE.

    ``options`` are those of Delta's writer. Raises PipelineError for a path, key or option that cannot be used.
    """
    named = key_columns(keys)
    folder = directory(path, 'sinks.delta("gold/hourly")')
    chosen = option_strings(options, RESERVED_OPTIONS)
    refuse_with_keys(named, chosen, "Delta")
    return DeltaSink(folder, named, chosen)
