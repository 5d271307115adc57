"""The event time of a window, as the time column of a second, longer window."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("operations")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/window_time"))
def window_time(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    marked = readings.withWatermark("at", "10 minutes")
    short = marked.groupBy(F.window("at", "5 minutes"), "device").agg(F.sum("n").alias("n"))
    return short.groupBy(F.window(F.window_time("window"), "20 minutes")).agg(F.max("n").alias("most"))
