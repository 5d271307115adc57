"""Refused: an aggregation after applyInPandasWithState. Instead: a second stream, or transformWithState."""

from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("unsupported")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"
TOTAL = "device STRING, at TIMESTAMP, total LONG"


def total(key: tuple[str], parts: Iterable[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
    """The device with its newest time and the sum of its readings so far."""
    rows = pd.concat(parts)
    so_far = (state.get[0] if state.exists else 0) + int(rows["n"].sum())
    state.update((so_far,))
    yield pd.DataFrame({"device": [key[0]], "at": [rows["at"].max()], "total": [so_far]})


@pipeline.stream(sink=sw.sinks.files("parquet", "out/aggregated_after_function"))
def aggregated_after_function(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).json("readings").withWatermark("at", "10 minutes")
    totals = readings.groupBy("device").applyInPandasWithState(total, TOTAL, "total LONG", "append", "NoTimeout")
    return totals.withWatermark("at", "10 minutes").groupBy(F.window("at", "5 minutes")).count()
