"""Refused: aggregates of distinct values. Instead: approx_count_distinct, or dropDuplicates before the count."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("unsupported")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.console(), output_mode="complete")
def distinct_count(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).json("readings")
    return readings.groupBy("device").agg(F.countDistinct("kind").alias("kinds"))
