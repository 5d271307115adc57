"""The Iceberg sink.

Always a batch function, never Spark's native sink, which numbers commits by query id. The query id is lost with the
checkpoint, so the next query would write batch 0 again and double its rows (docs/decisions/0130). Here the number line
is the stream's.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from slackwater.core.errors import PipelineError
from slackwater.core.sink import Identity, Traits, WriteContext
from slackwater.sinks.common.batch_function import WriteBatch
from slackwater.sinks.common.changes import unsupported
from slackwater.sinks.common.contract import Sink
from slackwater.sinks.common.directory import absolute, directory
from slackwater.sinks.common.problem import key_columns, option_strings, refuse_with_keys
from slackwater.sinks.iceberg.changes import staged_branch
from slackwater.sinks.iceberg.metadata import MAIN
from slackwater.sinks.iceberg.names import IcebergName, in_directory
from slackwater.sinks.iceberg.output import open_iceberg_output

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from slackwater.sinks.iceberg.writer import IcebergSparkTable

RESERVED_OPTIONS = frozenset({"path", "checkpointlocation", "branch", "overwrite-mode"})
_EXAMPLE = 'sinks.iceberg("gold/hourly") or sinks.iceberg("lake.gold.hourly")'


@dataclass(frozen=True, slots=True)
class IcebergSink(Sink):
    """Writes into the directory ``path``, or ``table`` in a Spark catalog.

    With ``keys``, rows replace equal keys; ``options`` are Iceberg's own. ``branch`` is written to.
    """

    path: str = ""
    table: str = ""
    keys: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    branch: str = MAIN

    kind = "iceberg"
    creates_output = True
    connectors = ("iceberg",)

    @property
    def traits(self) -> Traits:
        """The table's traits; tables that only Spark can open show nothing without it."""
        return open_iceberg_output(self.identity()).traits

    @property
    def output_modes(self) -> tuple[str, ...]:
        """The supported modes: without keys an update has no target row."""
        return ("append", "update") if self.keys else ("append", "complete")

    @property
    def location(self) -> str:
        return absolute(self.path) if self.path else self.table

    @property
    def name(self) -> IcebergName:
        return in_directory(self.location, self.branch) if self.path else IcebergName(self.table, branch=self.branch)

    def identity(self) -> Identity:
        named = {"path": self.location} if self.path else {"table": self.table}
        return {"kind": self.kind, **named, **({} if self.branch == MAIN else {"branch": self.branch})}

    def staged(self, operation: str, /) -> IcebergSink:
        if not self.traits.swaps:
            raise unsupported(
                self.table, "an Iceberg table that pyiceberg can open", "a catalog that only Spark can open"
            )
        return replace(self, branch=staged_branch(operation))

    def create_output(self, frame: DataFrame, partition_by: tuple[str, ...], /) -> None:
        self._spark_table.create(frame, partition_by)

    def check(self, frame: DataFrame, context: WriteContext, /) -> None:
        self.create_output(frame, context.partition_by)
        self._spark_table.check(frame, context)

    def batch_writer(self, context: WriteContext, /) -> WriteBatch:
        return partial(self._spark_table.write, context)

    @property
    def _spark_table(self) -> IcebergSparkTable:
        from slackwater.sinks.iceberg.writer import IcebergSparkTable  # noqa: PLC0415 - heavy; only a run pays for it

        return IcebergSparkTable(self)


def iceberg(table: str | os.PathLike[str], *, keys: str | Iterable[str] = (), **options: object) -> IcebergSink:
    """An Iceberg table, written exactly once: append and complete, or, with ``keys``, append and update by MERGE.

    ``table`` is a directory if it has a slash or is a ``pathlib.Path`` (what a Hadoop catalog has, and no catalog has
    to be set up), else a name in a catalog of Spark's settings, such as ``lake.gold.hourly``. ``options`` are those of
    Iceberg's writer. Raises PipelineError for a table, key or option that cannot be used.
    """
    named = key_columns(keys)
    chosen = option_strings(options, RESERVED_OPTIONS)
    refuse_with_keys(named, chosen, "Iceberg")
    if not isinstance(table, str) or "/" in table:
        return IcebergSink(path=directory(table, _EXAMPLE), keys=named, options=chosen)
    parts = table.split(".")
    if len(parts) < 2 or not all(part.strip(" `") for part in parts):  # noqa: PLR2004 - a catalog and a table
        raise PipelineError(
            "sink-table",
            "The name of a table cannot be used",
            expected="catalog.db.table, or a directory with a slash in it",
            found=repr(table),
            hint=f"for example {_EXAMPLE}",
        )
    return IcebergSink(table=table, keys=named, options=chosen)
