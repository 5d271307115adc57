"""The PostgreSQL sink, exactly once, against Spark's JDBC append, which is at-least-once: one batch, in turns.

    python benchmarks/postgres_sink.py [--rows 1000000] [--rounds 6] [--tasks 2]

Each round writes the same rows of six columns to an empty table with each method. The first round warms up and does
not count. The ratio is that of the medians. Needs Java 17, the postgres extra and PostgreSQL's server programs; the
JDBC driver is the locked connector (``slackwater connectors fetch postgresql``).
"""

from __future__ import annotations

import sys

# This folder has a file with the name of a module of the standard library, and Python searches the folder first.
if __name__ == "__main__":
    del sys.path[0]

import importlib.util

if importlib.util.find_spec("slackwater") is None:
    print("benchmarks/postgres_sink.py: the slackwater package is not installed", file=sys.stderr)
    print("hint: activate the development environment (scripts/setup)", file=sys.stderr)
    sys.exit(9)

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import psycopg

from slackwater import sinks
from slackwater.core.errors import SlackwaterError
from slackwater.core.sink import Owner, WriteContext
from slackwater.runtime.session import SessionOptions
from slackwater.runtime.session.session import end_session, start_session
from slackwater.sinks.common.registry import open_output

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GOALS = {"jdbc": 1.8, "jdbc tuned": 1.0}
MOST_S = 400
"""No round starts later than this, so that the benchmark finishes in under 8 minutes on a slow machine."""
COLUMNS = "id BIGINT, station TEXT, at TIMESTAMPTZ, temp DOUBLE PRECISION, level INTEGER, flag BOOLEAN"


def main() -> None:
    """Parse, measure, report; exit code 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--tasks", type=int, default=2)
    options = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from tests.support.postgres_server import postgres_server  # noqa: PLC0415 - of the checkout, found only now

    try:
        spark = session(options.tasks)
    except SlackwaterError as error:
        print(f"benchmarks/postgres_sink.py: {error}", file=sys.stderr)
        print(f"hint: {error.hint}" if error.hint else "", file=sys.stderr)
        sys.exit(error.exit_code)
    try:
        with postgres_server(tcp=True) as server:
            url = server.url(server.new_database())
            samples = run_rounds(methods(url), rows_of(spark, options.rows, options.tasks), url, options.rounds)
    finally:
        end_session(spark)
    sys.exit(0 if report(samples) else 1)


def session(tasks: int) -> SparkSession:
    """A session with the JDBC driver, made as a run makes it."""
    settings = {"spark.driver.memory": "2g"}
    return start_session(SessionOptions("postgres sink", f"local[{tasks}]", settings, ("postgresql",)), print)


def rows_of(spark: SparkSession, rows: int, tasks: int) -> DataFrame:
    """The rows, in memory: what is measured is writing them."""
    frame = spark.range(0, rows, 1, tasks).selectExpr(
        "id",
        "concat('station ', id % 1000) AS station",
        "timestamp_micros(1700000000000000 + id * 1000000) AS at",
        "id * 0.25D AS temp",
        "CAST(id % 100 AS INT) AS level",
        "id % 2 = 0 AS flag",
    ).cache()  # fmt: skip
    frame.count()
    return frame


def methods(url: str) -> dict[str, Callable[[DataFrame, int], None]]:
    """Name to a function that writes one batch to the table ``out``."""
    place = urlsplit(url)
    address = f"jdbc:postgresql://{place.hostname}:{place.port}{place.path}?user={place.username}"
    sink = sinks.postgres(url, "out")
    context = WriteContext("benchmark", "bench/rows", 1, "append")
    functions: list[Any] = []

    def ours(frame: DataFrame, batch: int) -> None:
        if not functions:
            open_output(sink.identity()).claim(Owner(context.stream_id, context.stream, ""))
            sink.check(frame, context)
            writer: Any = SimpleNamespace(foreachBatch=lambda function: function)
            functions.append(sink.attach(writer, context))
        functions[0](frame, batch)

    def jdbc(frame: DataFrame, _batch: int) -> None:
        frame.write.jdbc(address, "out", mode="append", properties={"driver": "org.postgresql.Driver"})

    def tuned(frame: DataFrame, _batch: int) -> None:
        options = {"driver": "org.postgresql.Driver", "batchsize": "10000"}
        frame.write.jdbc(f"{address}&reWriteBatchedInserts=true", "out", mode="append", properties=options)

    return {"sinks.postgres": ours, "jdbc": jdbc, "jdbc tuned": tuned}


def run_rounds(
    written_by: dict[str, Callable[[DataFrame, int], None]], frame: DataFrame, url: str, rounds: int
) -> dict[str, list[float]]:
    """All methods in turns; every other round goes backwards."""
    samples: dict[str, list[float]] = {name: [] for name in written_by}
    expected, deadline = frame.count(), time.monotonic() + MOST_S
    for number in range(rounds + 1):
        if number > 1 and time.monotonic() > deadline:
            print(f"stopped after {number - 1} of {rounds} rounds, to finish in under 8 minutes", flush=True)
            break
        for name in written_by if number % 2 else reversed(written_by):
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(f"CREATE TABLE IF NOT EXISTS out ({COLUMNS})".encode())
                connection.execute("TRUNCATE out")
                started = time.perf_counter()
                written_by[name](frame, number)
                took_s = time.perf_counter() - started
                found = connection.execute("SELECT count(*) FROM out").fetchone()
            if found != (expected,):
                sys.exit(f"{name} wrote {found} rows of {expected}")
            print(f"round {number}  {name:14} {took_s:7.2f} s{'' if number else '  (warm-up)'}", flush=True)
            if number:
                samples[name].append(took_s)
    return samples


def report(samples: dict[str, list[float]]) -> bool:
    """Print minima, medians and ratios; whether all goals are met."""
    ours = samples["sinks.postgres"]
    met = True
    for name, taken in samples.items():
        ratio = statistics.median(taken) / statistics.median(ours)
        goal = GOALS.get(name)
        met = met and (goal is None or ratio >= goal)
        shown = "" if goal is None else f"  {ratio:.2f} times our time, goal at least {goal:.1f}"
        print(f"{name:14} min {min(taken):6.2f} s  median {statistics.median(taken):6.2f} s{shown}")
    return met


if __name__ == "__main__":
    main()
