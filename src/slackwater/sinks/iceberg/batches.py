"""Writes a batch into an Iceberg table: an invisible snapshot, then published with its number."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from slackwater.core.errors import Refused
from slackwater.core.sink import WriteContext
from slackwater.sinks.common.batch_function import run_without_output, session_settings
from slackwater.sinks.common.merging import Merge
from slackwater.sinks.iceberg.metadata import marker
from slackwater.sinks.iceberg.publishing import Publisher
from slackwater.sinks.iceberg.table_name import TableName

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WAP_ID = "spark.wap.id"
"""With this setting Iceberg writes a session's commits into a snapshot that does not become current."""


@dataclass(frozen=True, slots=True)
class BatchWriter:
    table: TableName
    where: str
    keys: tuple[str, ...]
    options: Mapping[str, str]
    context: WriteContext

    def write(self, frame: DataFrame, batch: int) -> None:
        session = frame.sparkSession
        self.table.register(session)
        publisher = Publisher(session, self.table.sql, self.context, self.table.branch)
        before = publisher.refresh()
        newest = publisher.written(before)
        if newest < batch:
            staged = marker(self.context.stream_id, self.context.epoch, batch, uuid.uuid4().hex)
            has_rows = self.stage(frame, batch, staged)
            publisher.publish(before, batch, staged, has_rows=has_rows)
        elif batch <= self.context.planned:
            # Left out, the batch would be missing in Spark's watermark.
            run_without_output(frame)
        else:
            raise self._ahead(batch, newest)

    def stage(self, frame: DataFrame, batch: int, staged: str) -> bool:
        """Write an invisible snapshot marked ``staged``; returns whether it exists."""
        session = frame.sparkSession

        def run(statement: str) -> None:
            with session_settings(session, {WAP_ID: staged}):
                session.sql(statement)

        if self.keys:
            return Merge(self.table.target, self.keys, self.where).write(frame, batch, run)
        writer = frame.writeTo(self.table.target).options(**self.options)
        with session_settings(session, {WAP_ID: staged}):
            if self.context.output_mode == "complete":
                writer.overwrite(F.lit(True))
            else:
                writer.append()
        return True

    def _ahead(self, batch: int, newest: int) -> Refused:
        return Refused(
            "iceberg-ahead",
            f"The table has batch {newest} of stream {self.context.stream} already, while the checkpoint has just "
            f"planned batch {batch}: other rows, which would be skipped",
            where=self.where,
            expected=f"batch {newest + 1}, or one that was planned before this run",
            found=f"batch {batch}",
            hint="the checkpoint was deleted, replaced or restored from a copy: restore the newest one, or give the "
            "stream a new table",
        )
