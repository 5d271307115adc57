"""A windowed aggregation of clicks joined with a table."""

from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("web")

CLICKS = "ts timestamp, ts2 timestamp, page string, user string, n long, m long"


def clicks(spark):
    return spark.readStream.schema(CLICKS).option("maxFilesPerTrigger", 1).json("landing")


@pipeline.stream(sink=sw.sinks.files("parquet", "out"), output_mode="append")
def out(spark):
    names = spark.read.schema("page string, name string").json("names")
    rows = clicks(spark).withWatermark("ts", "10 minutes").join(names, "page", "left")
    return rows.groupBy(F.window("ts", "1 hour"), "name").agg(F.sum("n").alias("n"))
