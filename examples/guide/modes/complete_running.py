"""Complete mode: a running aggregation, all of it in each batch."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("modes")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.delta("out/complete_running"), output_mode="complete")
def complete_running(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    return readings.groupBy("device").agg(F.count("*").alias("readings"), F.sum("n").alias("n"))
