"""Clicks by two queries, each started and awaited in a thread of its own; the file ends while the threads do so."""

import sys
import threading
import time

from pyspark.sql import SparkSession

folder = sys.argv[1]
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()


def run_query(name: str) -> None:
    # The end of the file is reached before.
    time.sleep(1)
    clicks = spark.readStream.schema("at TIMESTAMP, page STRING").option("maxFilesPerTrigger", 1).json(f"{folder}/in")
    writer = clicks.writeStream.queryName(name).format("json").trigger(processingTime="300 milliseconds")
    query = writer.option("checkpointLocation", f"{folder}/checkpoints/{name}").start(f"{folder}/{name}")
    query.awaitTermination()
    sys.stdout.write(f"{name} has ended\n")


for name in ("first", "second"):
    threading.Thread(target=run_query, args=(name,)).start()
