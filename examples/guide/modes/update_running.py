"""Update mode: a running aggregation without a watermark, its newest row for each device."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("modes")

READING = "at TIMESTAMP, device STRING, kind STRING, n LONG"


@pipeline.stream(sink=sw.sinks.delta("out/update_running", keys=["device"]), output_mode="update")
def update_running(spark: SparkSession) -> DataFrame:
    readings = spark.readStream.schema(READING).option("maxFilesPerTrigger", 1).json("readings")
    return readings.groupBy("device").agg(F.count("*").alias("readings"), F.sum("n").alias("n"))
