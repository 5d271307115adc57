"""Refused: a full outer join of a stream and a table."""

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("unsupported")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/full_outer_with_table"))
def full_outer_with_table(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).json("readings")
    devices = spark.read.schema("device STRING, place STRING").json("devices.json")
    return readings.join(devices, "device", "full_outer")
