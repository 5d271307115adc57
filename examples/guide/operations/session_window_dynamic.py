"""Session windows with a gap of their own for each row."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("operations")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/session_window_dynamic"))
def session_window_dynamic(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    marked = readings.withWatermark("at", "10 minutes")
    gap = F.when(F.col("kind") == "heat", "6 minutes").otherwise("3 minutes")
    return marked.groupBy(F.session_window("at", gap), "device").agg(F.count("*").alias("readings"))
