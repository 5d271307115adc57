"""transformWithStateInPandas with initial state: the counts start with those of a table."""

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

    def handleInitialState(self, key: Any, initialState: pd.DataFrame, timerValues: Any) -> None:
        """Take the count of a value from the table."""
        self.count.update((int(initialState["before"].iloc[0]),))

    def close(self) -> None:
        """Nothing is open."""


@pipeline.stream(sink=sw.sinks.files("parquet", "out/tws_initial"))
def tws_initial(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    groups = readings.groupBy("n")
    known = spark.range(5).selectExpr("id AS n", "100L AS before")
    start = known.groupBy("n")
    counts = "n LONG, readings LONG"
    return groups.transformWithStateInPandas(Counter(), counts, "Append", "None", start)
