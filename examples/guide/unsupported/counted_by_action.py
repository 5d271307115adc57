"""Refused: count as an action. Instead: groupBy().count(), whose result the stream writes."""

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("unsupported")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/counted_by_action"))
def counted_by_action(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).json("readings")
    return readings.where(f"n < {readings.count()}")
