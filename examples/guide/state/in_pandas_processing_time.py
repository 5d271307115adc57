"""applyInPandasWithState with a processing-time timeout: a count is dropped after a day without readings."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

import slackwater as sw

pipeline = sw.Pipeline("state")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"
DAY_MS = 24 * 60 * 60 * 1000


def counted(n: Any, frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """A row for each value in the batch, none for one whose time is up."""
    if state.hasTimedOut:
        state.remove()
        return
    (readings,) = state.get if state.exists else (0,)
    readings += sum(len(frame) for frame in frames)
    state.update((readings,))
    state.setTimeoutDuration(DAY_MS)
    yield pd.DataFrame({"n": [n[0]], "readings": [readings]})


@pipeline.stream(sink=sw.sinks.files("parquet", "out/in_pandas_processing_time"))
def in_pandas_processing_time(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    counts, state, timeout = "n LONG, readings LONG", "readings LONG", GroupStateTimeout.ProcessingTimeTimeout
    return readings.groupBy("n").applyInPandasWithState(counted, counts, state, "append", timeout)
