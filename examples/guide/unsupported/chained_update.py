"""Refused: two aggregations in update mode. Instead: append mode."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("unsupported")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.console(), output_mode="update")
def chained_update(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).json("readings")
    marked = readings.withWatermark("at", "10 minutes")
    short = marked.groupBy(F.window("at", "5 minutes"), "device").count()
    return short.groupBy(F.window(F.window_time("window"), "20 minutes"), "device").count()
