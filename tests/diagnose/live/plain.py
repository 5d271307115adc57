"""plain.py TRIGGER: a query as its author writes it, without Slackwater: sums by window and page, until it ends."""

import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "2")
    .getOrCreate()
)
folder = Path(__file__).parent
clicks = spark.readStream.schema("ts timestamp, page string, n long").option("maxFilesPerTrigger", 1)
marked = clicks.json(str(folder / "landing")).withWatermark("ts", "10 minutes")
sums = marked.groupBy(F.window("ts", "30 minutes"), "page").agg(F.sum("n").alias("n"))
writer = sums.writeStream.format("parquet").option("path", str(folder / "out"))
writer = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(**{sys.argv[1]: True})
writer.start().awaitTermination()
