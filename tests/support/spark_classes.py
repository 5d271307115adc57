"""Runs queries of the kinds that the tests run, so that their classes are loaded: see ``quick_jvm``."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def main() -> None:
    """Aggregations, a join and a Python function over files and rates, into files and nothing, on both stores."""
    with tempfile.TemporaryDirectory() as folder:
        spark = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.warehouse.dir", f"{folder}/warehouse")
            .getOrCreate()
        )
        spark.sparkContext.setLogLevel("ERROR")
        landing = Path(folder, "landing")
        landing.mkdir()
        for number in range(2):
            times = [f"2026-01-01T0{number}:{minute:02}:00Z" for minute in range(60)]
            rows = [json.dumps({"ts": time, "k": "a", "n": 1}) for time in times]
            (landing / f"{number}.json").write_text("\n".join(rows))
        reader = spark.readStream.schema("ts timestamp, k string, n int").option("maxFilesPerTrigger", 1)
        frame = reader.json(str(landing))
        counted = frame.withWatermark("ts", "10 minutes").groupBy(F.window("ts", "30 minutes"), "k").agg(F.sum("n"))
        _run(counted.writeStream.format("parquet").option("path", f"{folder}/out"), f"{folder}/1")
        _run(counted.writeStream.format("noop"), f"{folder}/2")
        _run(_joined(frame).writeStream.format("json").option("path", f"{folder}/joined"), f"{folder}/3")
        spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
        _run(counted.writeStream.format("noop"), f"{folder}/4")
        spark.read.parquet(f"{folder}/out").collect()
        spark.stop()


def _joined(frame: DataFrame) -> DataFrame:
    marked = frame.withWatermark("ts", "10 minutes").withColumn("k", F.udf(str.upper)("k"))
    other = marked.select(F.col("ts").alias("other_ts"), F.col("k").alias("other_k"))
    return marked.dropDuplicates(["k", "ts"]).join(other, F.expr("k = other_k AND ts = other_ts"))


def _run(writer: DataStreamWriter, checkpoint: str) -> None:
    writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main()
