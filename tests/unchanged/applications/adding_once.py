"""Clicks per page, added to a Delta table by a batch function. Delta skips a batch it has (txnAppId)."""

import os

from pyspark.sql import DataFrame, SparkSession

DATA = os.environ["CLICKS_DATA"]
MERGE = """
MERGE INTO delta.`{table}` AS kept USING updated ON kept.page = updated.page
WHEN MATCHED THEN UPDATE SET count = kept.count + updated.count
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
spark.sql(f"CREATE TABLE IF NOT EXISTS delta.`{table}` (page STRING, count LONG) USING delta")


def add(batch: DataFrame, number: int) -> None:
    session = batch.sparkSession
    batch.groupBy("page").count().createOrReplaceTempView("updated")
    session.conf.set("spark.databricks.delta.write.txnAppId", "clicks")
    session.conf.set("spark.databricks.delta.write.txnVersion", str(number))
    session.sql(MERGE.format(table=table))


clicks = spark.readStream.schema("at TIMESTAMP, page STRING").option("maxFilesPerTrigger", 1).json(f"{DATA}/in")
(
    clicks.writeStream.queryName("added")
    .foreachBatch(add)
    .trigger(**({"availableNow": True} if os.environ.get("CLICKS_END") else {"processingTime": "0 seconds"}))
    .option("checkpointLocation", f"{DATA}/checkpoint")
    .start()
    .awaitTermination()
)
