"""A union and a join of two inputs with a watermark each: under plain Spark, uninterrupted or restarted after a phase.

As a program: ``python watermark_queries.py FOLDER`` runs each query twice in the folder and prints its rows as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Inputs = Sequence[tuple[str, Sequence[int]]]
PHASES: Sequence[Inputs] = (
    # The first input leaps ahead of the second, whose watermark counts.
    (("a", (20, 300)), ("b", (0,))),
    # Only the second has rows: the last one is late by what the first two of them have closed.
    (("b", (100,)), ("b", (110,)), ("b", (20,))),
    # Everything is written.
    (("a", (700,)), ("b", (700,))),
)
KINDS = ("union", "join")
POLICIES = ("min", "max")
NAMES = [f"{policy} {kind}" for policy in POLICIES for kind in KINDS]
POLICY = "spark.sql.streaming.multipleWatermarkPolicy"


def query(spark: Any, kind: str, place: str = "") -> Any:
    """The query over the folders ``a`` and ``b``, by default of the working directory."""
    from pyspark.sql import functions as F  # noqa: PLC0415 - this module is also imported where no Spark is needed

    def read(name: str) -> Any:
        rows = spark.readStream.schema("ts timestamp, n long").option("maxFilesPerTrigger", 1).json(place + name)
        return rows.withWatermark("ts", "10 minutes").select(
            F.col("ts").alias(f"{name}_ts"), F.col("n").alias(f"{name}_n"), F.lit(name).alias(name)
        )

    left, right = read("a"), read("b")
    if kind == "join":
        return left.join(
            right, F.expr("a_n = b_n AND a_ts BETWEEN b_ts - INTERVAL 5 MINUTES AND b_ts + INTERVAL 5 MINUTES")
        )
    both = left.selectExpr("a_ts AS ts", "a AS side").union(right.selectExpr("b_ts AS ts", "b AS side"))
    return both.groupBy(F.window("ts", "30 minutes"), "side").count()


def add(folder: Path, phase: int) -> None:
    """Add the files of a phase, each newer than the ones before."""
    for name, minutes in PHASES[phase]:
        (folder / name).mkdir(exist_ok=True)
        number = len(list((folder / name).iterdir()))
        rows = [{"ts": f"2024-01-01T{one // 60:02}:{one % 60:02}:00Z", "n": 1} for one in minutes]
        hidden = folder / f".{name}-{phase}-{number}"
        hidden.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.utime(hidden, (1_700_000_000 + 10 * phase + number, 1_700_000_000 + 10 * phase + number))
        hidden.rename(folder / name / f"{phase}-{number}.json")


def main(folder: Path) -> None:
    from pyspark.sql import SparkSession  # noqa: PLC0415 - as above

    settings = {"spark.ui.enabled": "false", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    builder = SparkSession.builder.master("local[2]")
    for name, value in {**settings, "spark.sql.shuffle.partitions": "2"}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    found: dict[str, dict[str, int]] = {}
    for restarts in ("uninterrupted", "restarted"):
        place = folder / restarts
        for name in ("a", "b"):
            (place / name).mkdir(parents=True)
        running: list[Any] = []
        for phase in range(len(PHASES)):
            add(place, phase)
            running = running or _start_all(spark, place)
            for one in running:
                one.processAllAvailable()
            if (phase == 0 and restarts == "restarted") or phase == len(PHASES) - 1:
                for one in running:
                    one.stop()
                running = []
        found |= {f"{restarts} {one}": _rows(place / f"out {one}") for one in NAMES}
    spark.stop()
    sys.stdout.write(json.dumps(found))


def _start_all(spark: Any, place: Path) -> list[Any]:
    started = []
    for name in NAMES:
        policy, _, kind = name.partition(" ")
        session = spark.newSession()
        session.conf.set(POLICY, policy)
        writer = query(session, kind, f"{place}/").writeStream.format("parquet").option("path", f"{place}/out {name}")
        started.append(writer.option("checkpointLocation", f"{place}/checkpoint {name}").start())
    return started


def _rows(output: Path) -> dict[str, int]:
    from tests.support.outputs import rows_of  # noqa: PLC0415 - pyarrow

    return dict(Counter(rows_of(output)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
