"""Deduplication for good: without a watermark Spark keeps every key as state."""

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("operations")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/drop_duplicates"))
def drop_duplicates(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    return readings.dropDuplicates(["at", "device", "kind"]).select("at", "device", "kind")
