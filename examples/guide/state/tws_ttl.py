"""transformWithStateInPandas with a time to live: the count of a value is dropped after a day without readings."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

import slackwater as sw

pipeline = sw.Pipeline("state")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"
DAY_MS = 24 * 60 * 60 * 1000


class Counter(StatefulProcessor):
    """Counts the readings of a value."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self.count = handle.getValueState("count", "readings LONG", ttlDurationMs=DAY_MS)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        """Count the rows of a batch."""
        count = sum(len(frame) for frame in rows)
        total = count + (self.count.get()[0] if self.count.exists() else 0)
        self.count.update((total,))
        yield pd.DataFrame({"n": [key[0]], "readings": [total]})

    def close(self) -> None:
        """Nothing is open."""


@pipeline.stream(sink=sw.sinks.files("parquet", "out/tws_ttl"))
def tws_ttl(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    groups = readings.groupBy("n")
    return groups.transformWithStateInPandas(Counter(), "n LONG, readings LONG", "Append", "ProcessingTime")
