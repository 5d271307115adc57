"""A join without a bound of event times: Spark runs no batch without data for it, and a restart plans none."""

import json
import os
from pathlib import Path

import pytest

from tests.support import warm_python
from tests.support.outputs import rows_of
from tests.support.warm_jvm import attached

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

QUERY = """
from pyspark.sql import functions as F

def query(spark):
    def side(name, p):
        rows = spark.readStream.schema("ts timestamp, k string, id bigint").option("maxFilesPerTrigger", 1).json(name)
        return rows.selectExpr(f"ts {p}ts", f"k {p}k", f"id {p}id").withWatermark(f"{p}ts", "10 seconds")
    return side("left", "l").join(side("right", "r"), F.expr("lk = rk"))
"""
PIPELINE = """
import slackwater as sw
from joined import query

pipeline = sw.Pipeline("web")

@pipeline.stream(sink=sw.sinks.files("parquet", "out"))
def joined(spark):
    return query(spark)
"""
PLAIN = """
from pyspark.sql import SparkSession
from joined import query

spark = SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", 1).getOrCreate()
writer = query(spark).writeStream.format("parquet").option("checkpointLocation", "plain-checkpoint")
writer.trigger(availableNow=True).start("plain-out").awaitTermination()
"""
CONF = ("--master", "local[1]", "--conf", "spark.sql.shuffle.partitions=1")


def _add(folder: Path, name: str, time: str, number: int) -> None:
    for side in ("left", "right"):
        (folder / side).mkdir(exist_ok=True)
        file = folder / side / f"{name}.json"
        file.write_text(json.dumps({"ts": f"2023-11-14T22:{time}Z", "k": f"k{number}", "id": number}))
        os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))


def _run_both(folder: Path) -> None:
    run = ("run", "pipeline.py", "--until-caught-up", *CONF)
    for ended in (
        warm_python.run(run, folder, attached(folder)),
        warm_python.run_program(["plain.py"], folder, attached(folder)),
    ):
        assert ended.returncode == 0, ended.stderr


def test_rows_between_the_last_two_watermarks_are_joined_as_by_plain_spark(tmp_path: Path) -> None:
    for name, text in (("joined.py", QUERY), ("pipeline.py", PIPELINE), ("plain.py", PLAIN)):
        (tmp_path / name).write_text(text)
    _add(tmp_path, "a", "10:00", 1)
    _add(tmp_path, "b", "12:00", 2)
    _run_both(tmp_path)
    # Older than the newest watermark, 22:11:50, and not older than the one before it.
    _add(tmp_path, "c", "11:00", 3)
    _run_both(tmp_path)

    rows = rows_of(tmp_path / "out")
    assert rows == rows_of(tmp_path / "plain-out")
    assert sum(rows.values()) == 3
