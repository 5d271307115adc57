"""Refused: dropDuplicates after an aggregation in update mode. Instead: append mode, or dropDuplicates before it."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("unsupported")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.console(), output_mode="update")
def deduplicated_updates(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).json("readings").withWatermark("at", "10 minutes")
    return readings.groupBy(F.window("at", "5 minutes"), "device").count().dropDuplicates(["device"])
