"""Refused: a grouped aggregation in append mode without a watermark: no row would ever be final."""

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("unsupported")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/append_without_watermark"))
def append_without_watermark(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).json("readings")
    return readings.groupBy("device").count()
