"""transformWithStateInPandas with a map: readings of each kind."""

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
        self.kinds = handle.getMapState("kinds", "kind STRING", "readings LONG")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        """Count the rows of a batch."""
        for frame in rows:
            for kind, count in frame["kind"].value_counts().items():
                before = self.kinds.getValue((kind,))[0] if self.kinds.containsKey((kind,)) else 0
                self.kinds.updateValue((kind,), (before + int(count),))
        totals = {kind[0]: total[0] for kind, total in self.kinds.iterator()}
        yield pd.DataFrame({"n": [key[0]], "heat": [totals.get("heat", 0)], "light": [totals.get("light", 0)]})

    def close(self) -> None:
        """Nothing is open."""


@pipeline.stream(sink=sw.sinks.files("parquet", "out/tws_map"))
def tws_map(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    groups = readings.groupBy("n")
    return groups.transformWithStateInPandas(Counter(), "n LONG, heat LONG, light LONG", "Append", "None")
