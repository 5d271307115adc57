"""Refused: sorting in append mode. Instead: sort the output when it is read."""

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("unsupported")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/sorted_rows"))
def sorted_rows(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).json("readings")
    return readings.orderBy("n")
