"""Sliding windows: 30 minutes long, one every 10 minutes."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("operations")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/sliding_window"))
def sliding_window(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    marked = readings.withWatermark("at", "10 minutes")
    return marked.groupBy(F.window("at", "30 minutes", "10 minutes"), "kind").agg(F.sum("n").alias("n"))
