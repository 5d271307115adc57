"""Two functions of batches that append the same rows; the folder of the checkpoints may be a new one at each start."""

import sys
import uuid
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

folder, kept = sys.argv[1], Path(sys.argv[1]) / "kept"
start = kept.read_text() if kept.exists() else str(uuid.uuid4())
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
clicks = spark.readStream.schema("at TIMESTAMP, page STRING").json(f"{folder}/in")


def append(name: str) -> None:
    def write(rows: DataFrame, _batch: int) -> None:
        rows.write.mode("append").json(f"{folder}/out/{name}")

    writer = clicks.writeStream.foreachBatch(write).trigger(availableNow=True)
    writer.option("checkpointLocation", f"{folder}/checkpoints/{start}/{name}-{start}").start().awaitTermination()


append("first")
append("second")
