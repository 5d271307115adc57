"""A table joined with a stream, right outer: the stream is the side whose rows are all kept."""

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("joins")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/static_right"))
def static_right(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    devices = spark.read.schema("device STRING, place STRING").json("devices.json")
    return devices.join(readings, "device", "right_outer")
