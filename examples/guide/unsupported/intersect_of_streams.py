"""Refused: INTERSECT of two streams. Instead: a left semi join with watermarks."""

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("unsupported")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/intersect_of_streams"))
def intersect_of_streams(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).json("readings")
    heat = readings.where("kind = 'heat'").select("device")
    return readings.select("device").intersectAll(heat)
