"""Starts queries that the programming guide calls unsupported, and handles what PySpark raises, except for the last."""

import sys
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

folder = sys.argv[1]
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
spark.conf.set("spark.sql.shuffle.partitions", "1")
clicks = spark.readStream.schema("at TIMESTAMP, page STRING").json(f"{folder}/in").withWatermark("at", "10 minutes")
windows = clicks.groupBy(F.window("at", "5 minutes"), "page").count()
repeated = windows.dropDuplicates(["page"])


def start(name: str, frame: DataFrame, mode: str, trigger: dict[str, Any]) -> None:
    writer = frame.writeStream.queryName(name).outputMode(mode).format("noop").trigger(**trigger)
    writer.option("checkpointLocation", f"{folder}/checkpoints/{name}").start().awaitTermination()
    sys.stdout.write(f"{name} was run\n")


QUERIES: dict[str, tuple[DataFrame, str, dict[str, Any]]] = {
    "sorted": (clicks.orderBy("at"), "append", {"availableNow": True}),
    "never_final": (clicks.groupBy("page").count(), "append", {"availableNow": True}),
    "late": (windows.groupBy("count").count(), "update", {"availableNow": True}),
    "repeated": (repeated, "update", {"availableNow": True}),
    "continuous": (clicks.select("page").distinct(), "append", {"continuous": "1 second"}),
}
for name, query in QUERIES.items():
    try:
        start(name, *query)
    except AnalysisException as error:
        sys.stdout.write(f"{name} was refused: {getattr(error, 'code', type(error).__name__)}\n")
spark.conf.set("spark.sql.streaming.unsupportedOperationCheck", "false")
start("unchecked", repeated, "update", {"availableNow": True})
spark.conf.set("spark.sql.streaming.unsupportedOperationCheck", "true")
start("first_ten", clicks.limit(10), "update", {"availableNow": True})
