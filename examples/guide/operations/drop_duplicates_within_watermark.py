"""Deduplication of rows whose event times differ by less than the watermark's delay."""

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("operations")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/drop_duplicates_within_watermark"))
def drop_duplicates_within_watermark(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    marked = readings.withWatermark("at", "10 minutes")
    return marked.dropDuplicatesWithinWatermark(["device", "kind", "n"]).select("device", "kind", "n")
