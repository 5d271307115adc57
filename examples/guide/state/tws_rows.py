"""transformWithState: the same as tws_value, on rows instead of data frames of pandas (Spark 4.1 and later)."""

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

import slackwater as sw

pipeline = sw.Pipeline("state")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


class Counter(StatefulProcessor):
    """Counts the readings of a value."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self.count = handle.getValueState("count", "readings LONG")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Count the rows of a batch."""
        count = sum(1 for _ in rows)
        total = count + (self.count.get()[0] if self.count.exists() else 0)
        self.count.update((total,))
        yield Row(n=key[0], readings=total)

    def close(self) -> None:
        """Nothing is open."""


@pipeline.stream(sink=sw.sinks.files("parquet", "out/tws_rows"))
def tws_rows(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    groups = readings.groupBy("n")
    return groups.transformWithState(Counter(), "n LONG, readings LONG", "Append", "None")
