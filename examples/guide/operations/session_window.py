"""Session windows: readings of a device that are at most 4 minutes apart."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("operations")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/session_window"))
def session_window(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    marked = readings.withWatermark("at", "10 minutes")
    return marked.groupBy(F.session_window("at", "4 minutes"), "device").agg(F.count("*").alias("readings"))
