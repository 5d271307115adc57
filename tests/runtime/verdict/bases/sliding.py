"""An aggregation over sliding windows."""

from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("web")

CLICKS = "ts timestamp, ts2 timestamp, page string, user string, n long, m long"


def clicks(spark):
    return spark.readStream.schema(CLICKS).option("maxFilesPerTrigger", 1).json("landing")


@pipeline.stream(sink=sw.sinks.files("parquet", "out"), output_mode="append")
def out(spark):
    return (
        clicks(spark)
        .withWatermark("ts", "10 minutes")
        .groupBy(F.window("ts", "1 hour", "30 minutes"), "page")
        .agg(F.sum("n").alias("n"))
    )
