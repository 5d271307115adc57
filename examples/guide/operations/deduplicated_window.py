"""Two stateful operators in one query: deduplication, then a windowed aggregation."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("operations")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/deduplicated_window"))
def deduplicated_window(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    marked = readings.withWatermark("at", "10 minutes").dropDuplicates(["at", "device", "kind"])
    return marked.groupBy(F.window("at", "15 minutes"), "device").agg(F.sum("n").alias("n"))
