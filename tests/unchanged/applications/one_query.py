"""Clicks per page and five minutes, as files. The folder is that of the program's argument."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

folder, end = sys.argv[1], sys.argv[2:] == ["--end"]
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.sql.session.timeZone", "Europe/Berlin")
    .getOrCreate()
)
clicks = spark.readStream.schema("at TIMESTAMP, page STRING").option("maxFilesPerTrigger", 1).json(f"{folder}/in")
counts = clicks.withWatermark("at", "10 minutes").groupBy(F.window("at", "5 minutes"), "page").count()
writer = counts.select(F.col("window.start").cast("long").alias("start"), "page", "count").writeStream
writer = writer.trigger(availableNow=True) if end else writer
query = writer.format("json").option("checkpointLocation", f"{folder}/checkpoint").start(f"{folder}/out")
query.awaitTermination()
