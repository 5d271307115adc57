"""Clicks per page and five minutes, appended by Spark's own writer to a Delta or Iceberg table at a path.

`delta:counts` writes the Delta table by its name, which no catalog keeps.
"""

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

data, (kind, _, table) = str(Path(sys.argv[1]).absolute()), sys.argv[2].partition(":")
SETTINGS = {
    "delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    },
    "iceberg": {
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": data,
    },
}
builder = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "1")
    .config("spark.jars", os.environ.get("CLICKS_JARS", ""))
)
for setting, value in SETTINGS[kind].items():
    builder = builder.config(setting, value)
spark = builder.getOrCreate()
if kind == "iceberg":
    spark.sql("CREATE TABLE IF NOT EXISTS lake.shop.counts (start LONG, page STRING, count LONG)")
clicks = spark.readStream.schema("at TIMESTAMP, page STRING").option("maxFilesPerTrigger", 1).json(f"{data}/in")
counts = clicks.withWatermark("at", "10 minutes").groupBy(F.window("at", "5 minutes"), "page").count()
writer = counts.select(F.col("window.start").cast("long").alias("start"), "page", "count").writeStream.format(kind)
writer = writer.trigger(availableNow=True).option("checkpointLocation", f"{data}/checkpoint")
path = f"{data}/shop/counts"
query = writer.option("path", path).toTable(table) if table else writer.start(path)
query.awaitTermination()
