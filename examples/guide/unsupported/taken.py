"""Refused: show, take, count and collect of a stream. Instead: return the DataFrame, and read the output."""

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("unsupported")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/taken"))
def taken(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).json("readings")
    readings.show()
    return readings
