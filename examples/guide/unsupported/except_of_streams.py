"""Refused: EXCEPT of two streams. Instead: a left outer join with watermarks, and a filter."""

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("unsupported")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/except_of_streams"))
def except_of_streams(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).json("readings")
    heat = readings.where("kind = 'heat'").select("device")
    return readings.select("device").exceptAll(heat)
