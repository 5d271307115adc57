"""Clicks per page and five minutes, appended to a table of JSON files by its name, which no catalog keeps."""

import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

data = str(Path(sys.argv[1]).absolute())
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "1")
    .config("spark.sql.catalogImplementation", "in-memory")
    .getOrCreate()
)
clicks = spark.readStream.schema("at TIMESTAMP, page STRING").option("maxFilesPerTrigger", 1).json(f"{data}/in")
counts = clicks.withWatermark("at", "10 minutes").groupBy(F.window("at", "5 minutes"), "page").count()
rows = counts.select(F.col("window.start").cast("long").alias("start"), "page", "count")
writer = (
    rows.writeStream.format("json")
    .option("path", f"{data}/shop/counts")
    .option("checkpointLocation", f"{data}/checkpoint")
)
writer.trigger(availableNow=True).toTable("counts").awaitTermination()
