"""Append mode: a window is written once, when no row can change it any more."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("modes")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/append_window"), output_mode="append")
def append_window(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    marked = readings.withWatermark("at", "10 minutes")
    windows = marked.groupBy(F.window("at", "15 minutes"), "kind").agg(F.sum("n").alias("n"))
    return windows.select(F.col("window.start").alias("start"), "kind", "n")
