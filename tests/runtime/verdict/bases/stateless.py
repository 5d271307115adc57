"""Clicks above a threshold, with a function in Python."""

from pyspark.sql import functions as F
from pyspark.sql.types import StringType

import slackwater as sw

pipeline = sw.Pipeline("web")

LEAST = 2

CLICKS = "ts timestamp, ts2 timestamp, page string, user string, n long, m long"


def clicks(spark):
    return spark.readStream.schema(CLICKS).option("maxFilesPerTrigger", 1).json("landing")


@F.udf(StringType())
def clean(page):
    return page.strip().upper()


@pipeline.stream(sink=sw.sinks.files("parquet", "out"), output_mode="append")
def out(spark):
    rows = clicks(spark).filter(F.col("n") > LEAST)
    return rows.select("ts", "user", clean("page").alias("page"), (F.col("n") * 2).alias("twice"))
