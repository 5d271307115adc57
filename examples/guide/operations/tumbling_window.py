"""A windowed aggregation: windows of 15 minutes that follow each other."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("operations")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/tumbling_window"))
def tumbling_window(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    marked = readings.withWatermark("at", "10 minutes")
    return marked.groupBy(F.window("at", "15 minutes"), "device").agg(
        F.sum("n").alias("n"), F.count("*").alias("readings")
    )
