"""Clicks without state, as rows of files, a Delta or Iceberg table, or what a function does with each batch."""

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

data, kind = str(Path(sys.argv[1]).absolute()), sys.argv[2]
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
if kind == "delta":
    builder = builder.config("spark.jars", os.environ.get("CLICKS_JARS", ""))
    builder = builder.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    builder = builder.config("spark.databricks.delta.snapshotPartitions", "1")
    builder = builder.config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
if kind == "iceberg":
    builder = builder.config("spark.jars", os.environ.get("CLICKS_JARS", ""))
    builder = builder.config("spark.sql.catalog.lake", "org.apache.iceberg.spark.SparkCatalog")
    builder = builder.config("spark.sql.catalog.lake.type", "hadoop").config("spark.sql.catalog.lake.warehouse", data)
spark = builder.getOrCreate()
if kind == "iceberg":
    spark.sql("CREATE TABLE IF NOT EXISTS lake.shop.pages (at LONG, page STRING)")


def replace_batch(rows, batch):
    rows.coalesce(1).write.mode("overwrite").json(f"{data}/batches/{batch}")


clicks = spark.readStream.schema("at TIMESTAMP, page STRING").option("maxFilesPerTrigger", 1).json(f"{data}/in")
pages = clicks.where("page <> 'p2'").select(F.unix_seconds("at").alias("at"), "page")
writer = pages.writeStream.trigger(availableNow=True).option("checkpointLocation", f"{data}/checkpoint")
if kind == "batches":
    query = writer.queryName("pages").foreachBatch(replace_batch).start()
elif kind == "json":
    query = writer.partitionBy("page").start(f"{data}/pages", format="json")
elif kind == "iceberg":
    query = writer.queryName("pages").format(kind).toTable("lake.shop.pages")
else:
    query = writer.format(kind).start(f"{data}/pages")
query.awaitTermination()
