"""Refused: cube, rollup and grouping sets in append mode. Instead: an aggregation for each grouping."""

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("unsupported")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/cubed"))
def cubed(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).json("readings")
    return readings.cube("device", "kind").count()
