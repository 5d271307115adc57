"""Complete mode is the only one in which a stream can be sorted, after an aggregation."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("modes")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.delta("out/complete_sorted"), output_mode="complete")
def complete_sorted(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    return readings.groupBy("device").agg(F.count("*").alias("readings")).orderBy("readings", "device")
