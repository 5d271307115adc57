"""Clicks per page and five minutes, by a program that records its own query."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import slackwater as sw

folder = sys.argv[1]
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "2")
    .getOrCreate()
)
if "--not-watched" not in sys.argv:
    sw.watch(spark, ledger=".slackwater/ledger.db")
clicks = spark.readStream.schema("at TIMESTAMP, page STRING").option("maxFilesPerTrigger", 1).json(f"{folder}/in")
counts = clicks.withWatermark("at", "10 minutes").groupBy(F.window("at", "5 minutes"), "page").count()
writer = counts.select(F.col("window.start").cast("long").alias("start"), "page", "count").writeStream
writer = writer.trigger(availableNow=True) if "--end" in sys.argv else writer
query = writer.format("json").option("checkpointLocation", f"{folder}/checkpoint").start(f"{folder}/out")
query.awaitTermination()
