"""Refused: foreach as an action. Instead: the sink foreach."""

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("unsupported")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/foreach_by_action"))
def foreach_by_action(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).json("readings")
    readings.foreach(print)
    return readings
