"""Clicks of new pages, by a program that restarts its own query after an error, and waits for it in a loop."""

import sys
import time
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

folder, end = Path(sys.argv[1]), "--end" in sys.argv
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
spark.conf.set("spark.sql.shuffle.partitions", "1")


def write(batch: DataFrame, number: int) -> None:
    failed = folder / "failed_once"
    if number == 2 and not failed.exists():
        failed.touch()
        raise OSError("the service did not answer")
    # The batch's number names its folder, so that a batch that is run again replaces its own rows.
    batch.write.mode("overwrite").json(f"{folder}/batches/{number}")


def start() -> StreamingQuery:
    reader = spark.readStream.schema("at TIMESTAMP, page STRING").option("maxFilesPerTrigger", 1)
    counts = (
        reader.json(f"{folder}/in")
        .withWatermark("at", "10 minutes")
        .groupBy(F.window("at", "5 minutes"), "page")
        .agg(F.count("*").alias("count"))
    )
    rows = counts.select(F.col("window.start").cast("long").alias("start"), "page", "count")
    return (
        rows.writeStream.foreachBatch(write)
        .queryName("counted")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .start()
    )


query = start()
while True:
    try:
        query.processAllAvailable()
    except StreamingQueryException:
        query = start()
        continue
    if end:
        break
    time.sleep(0.2)
query.stop()
