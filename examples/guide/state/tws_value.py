"""transformWithStateInPandas with a value: how many readings of each value there were so far."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

import slackwater as sw

pipeline = sw.Pipeline("state")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


class Counter(StatefulProcessor):
    """Counts the readings of a value."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self.count = handle.getValueState("count", "readings LONG")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        """Count the rows of a batch."""
        count = sum(len(frame) for frame in rows)
        total = count + (self.count.get()[0] if self.count.exists() else 0)
        self.count.update((total,))
        yield pd.DataFrame({"n": [key[0]], "readings": [total]})

    def close(self) -> None:
        """Nothing is open."""


@pipeline.stream(sink=sw.sinks.files("parquet", "out/tws_value"))
def tws_value(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    groups = readings.groupBy("n")
    return groups.transformWithStateInPandas(Counter(), "n LONG, readings LONG", "Append", "None")
