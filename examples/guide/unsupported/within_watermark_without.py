"""Refused: dropDuplicatesWithinWatermark without a watermark."""

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("unsupported")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/within_watermark_without"))
def within_watermark_without(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).json("readings")
    return readings.dropDuplicatesWithinWatermark(["device"])
