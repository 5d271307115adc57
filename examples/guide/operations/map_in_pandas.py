"""A Python function that takes and returns data frames of pandas (mapInPandas)."""

from collections.abc import Iterator

import pandas as pd
from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("operations")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


def without_light(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Only what is no measurement of light."""
    for frame in frames:
        yield frame[frame["kind"] != "light"][["at", "n"]]


@pipeline.stream(sink=sw.sinks.files("parquet", "out/map_in_pandas"))
def map_in_pandas(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    return readings.mapInPandas(without_light, "at TIMESTAMP, n LONG")
