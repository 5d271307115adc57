"""Arbitrary state by applyInPandasWithState: how many readings of each value there were so far."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

import slackwater as sw

pipeline = sw.Pipeline("state")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


def counted(n: Any, frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """A row for each value in the batch."""
    (readings,) = state.get if state.exists else (0,)
    readings += sum(len(frame) for frame in frames)
    state.update((readings,))
    yield pd.DataFrame({"n": [n[0]], "readings": [readings]})


@pipeline.stream(sink=sw.sinks.files("parquet", "out/in_pandas_no_timeout"))
def in_pandas_no_timeout(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    counts, state, timeout = "n LONG, readings LONG", "readings LONG", GroupStateTimeout.NoTimeout
    return readings.groupBy("n").applyInPandasWithState(counted, counts, state, "append", timeout)
