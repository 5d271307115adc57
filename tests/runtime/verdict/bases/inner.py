"""Clicks with the orders of the same user in the hour after them."""

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
    left = clicks(spark).withWatermark("ts", "10 minutes").alias("c")
    right = orders(spark).withWatermark("at", "20 minutes").alias("o")
    near = F.expr("c.user = o.user AND o.at >= c.ts AND o.at <= c.ts + INTERVAL 1 HOUR")
    joined = left.join(right, near, "inner")
    return joined.select("c.ts", "c.user", "c.n", "o.at", "o.amount")
