"""A grouped aggregation whose key has the event time itself."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("operations")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/grouped_by_event_time"))
def grouped_by_event_time(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    marked = readings.withWatermark("at", "10 minutes")
    return marked.groupBy("at", "device").agg(F.sum("n").alias("n"))
