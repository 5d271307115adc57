"""A windowed aggregation of what a function in Python computes."""

from pyspark.sql import functions as F
from pyspark.sql.types import StringType

import slackwater as sw

pipeline = sw.Pipeline("web")

PREFIX = "page "

CLICKS = "ts timestamp, ts2 timestamp, page string, user string, n long, m long"


def clicks(spark):
    return spark.readStream.schema(CLICKS).option("maxFilesPerTrigger", 1).json("landing")


def label(page):
    return PREFIX + page


@F.udf(StringType())
def clean(page):
    # One name for all spellings.
    name = label(page.strip())
    print("cleaned", name)
    return name.upper()


@pipeline.stream(sink=sw.sinks.files("parquet", "out"), output_mode="append")
def out(spark):
    rows = clicks(spark).withWatermark("ts", "10 minutes").withColumn("page", clean("page"))
    return rows.groupBy(F.window("ts", "1 hour"), "page").agg(F.sum("n").alias("n"))
