"""A stream joined with a table, left anti: readings of unknown devices."""

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("joins")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/static_anti"))
def static_anti(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    devices = spark.read.schema("device STRING, place STRING").json("devices.json")
    return readings.join(devices, "device", "left_anti")
