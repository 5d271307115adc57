"""A windowed aggregation over two sources."""

from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("web")

CLICKS = "ts timestamp, ts2 timestamp, page string, user string, n long, m long"


def clicks(spark):
    return spark.readStream.schema(CLICKS).option("maxFilesPerTrigger", 1).json("landing")


ORDERS = "at timestamp, page string, user string, amount long"


def orders(spark):
    return spark.readStream.schema(ORDERS).option("maxFilesPerTrigger", 1).json("orders")


@pipeline.stream(sink=sw.sinks.files("parquet", "out"), output_mode="append")
def out(spark):
    bought = orders(spark).select(F.col("at").alias("ts"), "page", F.col("amount").alias("n"))
    rows = clicks(spark).select("ts", "page", "n").unionByName(bought)
    return rows.withWatermark("ts", "10 minutes").groupBy(F.window("ts", "1 hour"), "page").agg(F.sum("n").alias("n"))
