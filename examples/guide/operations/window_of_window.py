"""Windows of windows: the short window itself is the time column of the longer one."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("operations")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/window_of_window"))
def window_of_window(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    marked = readings.withWatermark("at", "10 minutes")
    short = marked.groupBy(F.window("at", "5 minutes"), "kind").agg(F.count("*").alias("readings"))
    return short.groupBy(F.window("window", "15 minutes"), "kind").agg(F.max("readings").alias("most"))
