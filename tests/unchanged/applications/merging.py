"""Clicks per page and five minutes, merged into a Delta table by a batch function; configured by the environment."""

import os

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

DATA = os.environ["CLICKS_DATA"]
MERGE = """
MERGE INTO delta.`{table}` AS kept USING updated
ON kept.start = updated.start AND kept.page = updated.page
WHEN MATCHED THEN UPDATE SET *
WHEN NOT MATCHED THEN INSERT *
"""

spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "1")
    .config("spark.jars", os.environ.get("CLICKS_JARS", ""))
    .config("spark.databricks.delta.snapshotPartitions", "1")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .getOrCreate()
)
table = f"{DATA}/table"
spark.sql(f"CREATE TABLE IF NOT EXISTS delta.`{table}` (start LONG, page STRING, count LONG) USING delta")


def merge(batch: DataFrame, _number: int) -> None:
    batch.createOrReplaceTempView("updated")
    batch.sparkSession.sql(MERGE.format(table=table))


clicks = spark.readStream.schema("at TIMESTAMP, page STRING").option("maxFilesPerTrigger", 1).json(f"{DATA}/in")
counts = clicks.withWatermark("at", "10 minutes").groupBy(F.window("at", "5 minutes"), "page").count()
(
    counts.select(F.col("window.start").cast("long").alias("start"), "page", "count")
    .writeStream.queryName("merged")
    .outputMode("update")
    .foreachBatch(merge)
    .trigger(**({"availableNow": True} if os.environ.get("CLICKS_END") else {"processingTime": "0 seconds"}))
    .option("checkpointLocation", f"{DATA}/checkpoint")
    .start()
    .awaitTermination()
)
