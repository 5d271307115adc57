"""A writer of Spark that is started into a table of its catalog."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter


@dataclass(frozen=True, slots=True)
class IntoTable:
    """``toTable`` names the table and starts the query in one step."""

    writer: DataStreamWriter
    table: str

    def start(self) -> StreamingQuery:
        """Create the table if it does not exist, and start the query."""
        return self.writer.toTable(self.table)
