"""Refused: a stream joined with a table, right outer: the side whose rows are all kept has to be the stream."""

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("unsupported")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/right_outer_of_stream"))
def right_outer_of_stream(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).json("readings")
    devices = spark.read.schema("device STRING, place STRING").json("devices.json")
    return readings.join(devices, "device", "right_outer")
