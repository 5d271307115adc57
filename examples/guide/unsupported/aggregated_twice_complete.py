"""Refused: two aggregations in complete mode. Instead: append mode with watermarks."""

from pyspark.sql import DataFrame, SparkSession

import slackwater as sw

pipeline = sw.Pipeline("unsupported")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.console(), output_mode="complete")
def aggregated_twice_complete(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).json("readings")
    return readings.groupBy("device", "kind").count().groupBy("device").count()
