"""transformWithStateInPandas with event-time timers: a count every time the watermark has advanced 15 minutes."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

import slackwater as sw

pipeline = sw.Pipeline("state")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"
STEP_MS = 15 * 60 * 1000


class Counter(StatefulProcessor):
    """Counts the readings of a value."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self.handle = handle
        self.count = handle.getValueState("count", "readings LONG")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        """Count the rows of a batch."""
        count = sum(len(frame) for frame in rows)
        if not self.count.exists():
            self.handle.registerTimer(timerValues.getCurrentWatermarkInMs() + STEP_MS)
        total = count + (self.count.get()[0] if self.count.exists() else 0)
        self.count.update((total,))
        yield from ()

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
        """A row for the time that has passed."""
        yield pd.DataFrame({"n": [key[0]], "readings": [self.count.get()[0]]})
        self.count.clear()

    def close(self) -> None:
        """Nothing is open."""


@pipeline.stream(sink=sw.sinks.files("parquet", "out/tws_timers"))
def tws_timers(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    readings = readings.withWatermark("at", "10 minutes")
    groups = readings.groupBy("n")
    return groups.transformWithStateInPandas(Counter(), "n LONG, readings LONG", "Append", "EventTime")
