"""Refused: window functions over rows. Instead: windows of time, or foreach_batch."""

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("unsupported")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.files("parquet", "out/ranked"))
def ranked(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).json("readings")
    order = Window.partitionBy("device").orderBy("at")
    return readings.withColumn("rank", F.rank().over(order))
