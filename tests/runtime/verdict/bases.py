"""The pipelines of the table, one after another: each is what comes before the first, and its own part."""

from pyspark.sql import functions as F

import slackwater as sw

pipeline = sw.Pipeline("web")

CLICKS = "ts timestamp, ts2 timestamp, page string, user string, n long, m long"
ORDERS = "at timestamp, page string, user string, amount long"


def clicks(spark):
    return spark.readStream.schema(CLICKS).option("maxFilesPerTrigger", 1).json("landing")


def orders(spark):
    return spark.readStream.schema(ORDERS).option("maxFilesPerTrigger", 1).json("orders")


def keep(frame, batch):
    frame.write.mode("overwrite").parquet(f"out/{batch}")


# tumbling: a windowed aggregation by page.
@pipeline.stream(sink=sw.sinks.files("parquet", "out"), output_mode="append")
def out(spark):
    return (
        clicks(spark)
        .withWatermark("ts", "10 minutes")
        .groupBy(F.window("ts", "1 hour"), "page")
        .agg(F.sum("n").alias("n"), F.sum("m").alias("m"), F.count("*").alias("clicks"))
    )


# sliding: an aggregation over sliding windows.
@pipeline.stream(sink=sw.sinks.files("parquet", "out"), output_mode="append")
def out(spark):
    return (
        clicks(spark)
        .withWatermark("ts", "10 minutes")
        .groupBy(F.window("ts", "1 hour", "30 minutes"), "page")
        .agg(F.sum("n").alias("n"))
    )


# session: sessions of users with a fixed gap.
@pipeline.stream(sink=sw.sinks.files("parquet", "out"), output_mode="append")
def out(spark):
    return (
        clicks(spark)
        .withWatermark("ts", "10 minutes")
        .groupBy(F.session_window("ts", "5 minutes"), "user")
        .agg(F.sum("n").alias("n"), F.count("*").alias("clicks"))
    )


# gaps: sessions of users with a gap by page.
@pipeline.stream(sink=sw.sinks.files("parquet", "out"), output_mode="append")
def out(spark):
    gap = F.when(F.col("page") == "p0", "3 minutes").otherwise("6 minutes")
    return (
        clicks(spark)
        .withWatermark("ts", "10 minutes")
        .groupBy(F.session_window("ts", gap), "user")
        .agg(F.sum("n").alias("n"))
    )


# update: a running windowed aggregation, in update mode.
@pipeline.stream(sink=sw.sinks.foreach_batch(keep), output_mode="update")
def out(spark):
    return (
        clicks(spark)
        .withWatermark("ts", "10 minutes")
        .groupBy(F.window("ts", "1 hour"), "page")
        .agg(F.sum("n").alias("n"), F.sum("m").alias("m"))
    )


# totals: totals of all time, in update mode.
@pipeline.stream(sink=sw.sinks.foreach_batch(keep), output_mode="update")
def out(spark):
    return clicks(spark).groupBy("page", "user").agg(F.sum("n").alias("n"), F.sum("m").alias("m"))


# complete: totals of all time, written whole.
@pipeline.stream(sink=sw.sinks.foreach_batch(keep), output_mode="complete")
def out(spark):
    return clicks(spark).groupBy("page").agg(F.sum("n").alias("n"), F.count("*").alias("clicks"))


# dedup: the first click of a user and time.
@pipeline.stream(sink=sw.sinks.files("parquet", "out"), output_mode="append")
def out(spark):
    return (
        clicks(spark).withWatermark("ts", "10 minutes").dropDuplicates(["user", "ts"]).select("ts", "user", "page", "n")
    )


# within: the first click of a user within the watermark.
@pipeline.stream(sink=sw.sinks.files("parquet", "out"), output_mode="append")
def out(spark):
    return (
        clicks(spark)
        .withWatermark("ts", "10 minutes")
        .dropDuplicatesWithinWatermark(["user"])
        .select("ts", "user", "page", "n")
    )


# inner: clicks with the orders of the same user in the hour after them.
@pipeline.stream(sink=sw.sinks.files("parquet", "out"), output_mode="append")
def out(spark):
    left = clicks(spark).withWatermark("ts", "10 minutes").alias("c")
    right = orders(spark).withWatermark("at", "20 minutes").alias("o")
    near = F.expr("c.user = o.user AND o.at >= c.ts AND o.at <= c.ts + INTERVAL 1 HOUR")
    joined = left.join(right, near, "inner")
    return joined.select("c.ts", "c.user", "c.n", "o.at", "o.amount")


# outer: clicks with or without an order in the hour after them.
@pipeline.stream(sink=sw.sinks.files("parquet", "out"), output_mode="append")
def out(spark):
    left = clicks(spark).withWatermark("ts", "10 minutes").alias("c")
    right = orders(spark).withWatermark("at", "20 minutes").alias("o")
    near = F.expr("c.user = o.user AND o.at >= c.ts AND o.at <= c.ts + INTERVAL 1 HOUR")
    joined = left.join(right, near, "leftOuter")
    return joined.select("c.ts", "c.user", "c.n", "o.at", "o.amount")


# state: the running sum and count of a user, by a function in Python.
import pandas as pd


def running(key, frames, state):
    total, seen = state.get if state.exists else (0, 0)
    for frame in frames:
        total += int(frame["n"].sum())
        seen += len(frame)
    state.update((total, seen))
    yield pd.DataFrame({"user": [key[0]], "total": [total], "seen": [seen]})


@pipeline.stream(sink=sw.sinks.foreach_batch(keep), output_mode="update")
def out(spark):
    return (
        clicks(spark)
        .groupBy("user")
        .applyInPandasWithState(
            running, "user string, total long, seen long", "total long, seen long", "update", "NoTimeout"
        )
    )


# function: a windowed aggregation of what a function in Python computes.
from pyspark.sql.types import StringType

PREFIX = "page "


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


# module: a windowed aggregation whose filter is in a module next to the pipeline file.
import rules


@pipeline.stream(sink=sw.sinks.files("parquet", "out"), output_mode="append")
def out(spark):
    rows = rules.wanted(clicks(spark)).withWatermark("ts", "10 minutes")
    return rows.groupBy(F.window("ts", "1 hour"), "page").agg(F.sum("n").alias("n"))


# chained: windows of windows.
@pipeline.stream(sink=sw.sinks.files("parquet", "out"), output_mode="append")
def out(spark):
    hours = (
        clicks(spark)
        .withWatermark("ts", "10 minutes")
        .groupBy(F.window("ts", "10 minutes"), "page")
        .agg(F.sum("n").alias("n"))
    )
    return hours.groupBy(F.window(F.window_time("window"), "1 hour"), "page").agg(F.max("n").alias("most"))


# stateless: clicks above a threshold, with a function in Python.
from pyspark.sql.types import StringType

LEAST = 2


@F.udf(StringType())
def clean(page):
    return page.strip().upper()


@pipeline.stream(sink=sw.sinks.files("parquet", "out"), output_mode="append")
def out(spark):
    rows = clicks(spark).filter(F.col("n") > LEAST)
    return rows.select("ts", "user", clean("page").alias("page"), (F.col("n") * 2).alias("twice"))


# union: a windowed aggregation over two sources.
@pipeline.stream(sink=sw.sinks.files("parquet", "out"), output_mode="append")
def out(spark):
    bought = orders(spark).select(F.col("at").alias("ts"), "page", F.col("amount").alias("n"))
    rows = clicks(spark).select("ts", "page", "n").unionByName(bought)
    return rows.withWatermark("ts", "10 minutes").groupBy(F.window("ts", "1 hour"), "page").agg(F.sum("n").alias("n"))


# static: a windowed aggregation of clicks joined with a table.
@pipeline.stream(sink=sw.sinks.files("parquet", "out"), output_mode="append")
def out(spark):
    names = spark.read.schema("page string, name string").json("names")
    rows = clicks(spark).withWatermark("ts", "10 minutes").join(names, "page", "left")
    return rows.groupBy(F.window("ts", "1 hour"), "name").agg(F.sum("n").alias("n"))
