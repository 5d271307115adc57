"""bounds.py FOLDER: how far back rows matter for several queries, as JSON."""

import json
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from slackwater.runtime.profile import profile_of

FOLDER = Path(sys.argv[1])
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
(FOLDER / "in").mkdir()


def rows() -> DataFrame:
    return spark.readStream.schema("at TIMESTAMP, other TIMESTAMP, device STRING, n LONG").json(str(FOLDER / "in"))


def marked() -> DataFrame:
    return rows().withWatermark("at", "10 minutes")


def windows(frame: DataFrame, *window: str) -> DataFrame:
    return frame.groupBy(F.window(*window), "device").count()


static = spark.createDataFrame([("a", "b")], "device STRING, place STRING")
QUERIES = {
    "tumbling": windows(marked(), "at", "1 hour"),
    "sliding": windows(marked(), "at", "1 hour", "15 minutes"),
    "renamed": windows(marked().selectExpr("at AS x", "device").where("device > 'a'"), "x", "1 hour"),
    "joined with a table": windows(marked().join(static, "device"), "at", "1 hour"),
    "watermark above a union": windows(rows().union(rows()).withWatermark("at", "10 minutes"), "at", "1 hour"),
    "chained": windows(marked(), "at", "10 minutes").groupBy(F.window("window", "30 minutes")).count(),
    "chained by window_time": windows(marked(), "at", "10 minutes")
    .groupBy(F.window(F.window_time("window"), "30 minutes"))
    .count(),
    "window of another column": windows(marked(), "other", "1 hour"),
    "window of a sum": marked().groupBy(F.window(F.expr("at + INTERVAL 1 HOUR"), "1 hour")).count(),
    "a source without a watermark": windows(marked().union(rows()), "at", "1 hour"),
    "chained by another column": windows(marked(), "other", "10 minutes").groupBy(F.window("window", "1 hour")).count(),
    "by a key": marked().groupBy("device").count(),
    "session": marked().groupBy(F.session_window("at", "4 minutes"), "device").count(),
}
sys.stdout.write(json.dumps({name: profile_of(frame).retention_ms for name, frame in QUERIES.items()}))
