"""Refused: UNION of a stream and a table. Instead: read the table as a stream, or write both to one output."""

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("unsupported")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/union_with_table"))
def union_with_table(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).json("readings")
    devices = spark.read.schema("device STRING, place STRING").json("devices.json")
    return readings.select("device").union(devices.select("device"))
