"""Update mode: a window is written each time it changes; the table keeps its newest row by the keys."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("modes")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.delta("out/update_window", keys=["start", "kind"]), output_mode="update")
def update_window(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    marked = readings.withWatermark("at", "10 minutes")
    windows = marked.groupBy(F.window("at", "15 minutes"), "kind").agg(F.sum("n").alias("n"))
    return windows.select(F.col("window.start").alias("start"), "kind", "n")
