"""Clicks per page and five minutes, appended to an Iceberg table by its name in a catalog."""

import argparse
import os
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("--end", action="store_true")
arguments = parser.parse_args()

spark = (
    SparkSession.builder.appName("clicks")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "1")
    .config("spark.jars", os.environ.get("CLICKS_JARS", ""))
    .config("spark.sql.catalog.lake", "org.apache.iceberg.spark.SparkCatalog")
    .config("spark.sql.catalog.lake.type", "hadoop")
    .config("spark.sql.catalog.lake.warehouse", str(Path(arguments.data, "lake").absolute()))
    .master("local[2]")
    .getOrCreate()
)
clicks = (
    spark.readStream.schema("at TIMESTAMP, page STRING").option("maxFilesPerTrigger", 1).json(f"{arguments.data}/in")
)
counts = clicks.withWatermark("at", "10 minutes").groupBy(F.window("at", "5 minutes"), "page").count()
writer = counts.select(F.col("window.start").cast("long").alias("start"), "page", "count").writeStream.format("iceberg")
if arguments.end:
    writer = writer.trigger(availableNow=True)
query = writer.option("checkpointLocation", f"{arguments.data}/checkpoint").toTable("lake.shop.counts")
query.awaitTermination()
