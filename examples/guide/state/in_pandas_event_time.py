"""applyInPandasWithState with an event-time timeout: a count when a value has not been read for 5 minutes."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

import slackwater as sw

pipeline = sw.Pipeline("state")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"
SILENT_MS = 5 * 60 * 1000


def counted(key: Any, frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """The number of readings, once the watermark is 5 minutes past the newest."""
    readings, newest = state.get if state.exists else (0, 0)
    if state.hasTimedOut:
        state.remove()
        yield pd.DataFrame({"n": [key[0]], "readings": [readings]})
        return
    for frame in frames:
        readings += len(frame)
        newest = max(newest, int(frame["at"].max().timestamp() * 1000))
    state.update((readings, newest))
    state.setTimeoutTimestamp(max(newest, state.getCurrentWatermarkMs()) + SILENT_MS)


@pipeline.stream(sink=sw.sinks.files("parquet", "out/in_pandas_event_time"))
def in_pandas_event_time(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    readings = readings.withWatermark("at", "10 minutes")
    counts, state = "n LONG, readings LONG", "readings LONG, newest LONG"
    groups = readings.groupBy("n")
    return groups.applyInPandasWithState(counted, counts, state, "append", GroupStateTimeout.EventTimeTimeout)
