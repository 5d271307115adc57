"""Refused: a left semi join of a table with a stream."""

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("unsupported")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/semi_of_table"))
def semi_of_table(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).json("readings")
    devices = spark.read.schema("device STRING, place STRING").json("devices.json")
    return devices.join(readings, "device", "left_semi")
