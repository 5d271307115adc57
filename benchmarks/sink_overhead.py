"""What a managed sink costs in each batch: ``sinks.files`` and ``sinks.delta`` against Spark's own, in turns.

    python benchmarks/sink_overhead.py [--batches 20] [--rounds 12] [--sink files] [--sink delta]

A file source hands over one small file for each batch, so a batch is as short as it can be and every cost shows. Both
sides run as bare queries in one Spark session, without ledger and listener (``ledger_overhead.py`` measures those).
Time is taken from the files that Spark writes, ``sources/0/1`` to the last of ``commits/``. The first round warms up
and does not count; the ratio is the median of all rounds.
"""

from __future__ import annotations

import sys

# This folder has a file with the name of a module of the standard library, and Python searches the folder first.
if __name__ == "__main__":
    del sys.path[0]

import importlib.util

if importlib.util.find_spec("slackwater") is None:
    print("benchmarks/sink_overhead.py: the slackwater package is not installed", file=sys.stderr)
    print("hint: activate the development environment (scripts/setup)", file=sys.stderr)
    sys.exit(9)

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from slackwater.core.errors import SlackwaterError
from slackwater.core.sink import Owner, WriteContext
from slackwater.runtime.session import SessionOptions
from slackwater.runtime.session.session import end_session, start_session
from slackwater.sinks import delta, files
from slackwater.sinks.common.contract import Sink
from slackwater.sinks.common.registry import open_output

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter


ROWS = 20
GOAL = 1.03
MOST_S = 400
"""No round starts later than this, so that the benchmark finishes in under 8 minutes on a slow machine."""
CONTEXT = WriteContext("5f0e", "bench/rows", 1, "append")


@dataclass(frozen=True, slots=True)
class Bench:
    """What one side needs to run the query once, in a folder of its own."""

    spark: SparkSession
    source: Path
    folder: Path
    batches: int

    def rows(self) -> DataFrame:
        """The rows of one file in each batch."""
        reader = self.spark.readStream.schema("id LONG, text STRING").option("maxFilesPerTrigger", 1)
        return reader.json(str(self.source))

    def run(self, attach: Callable[[DataStreamWriter], DataStreamWriter]) -> float:
        """Run to the end of the input; the seconds of all batches but the first."""
        checkpoint = self.folder / "checkpoint"
        writer = self.rows().writeStream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        attach(writer).start().awaitTermination()
        first = (checkpoint / "sources" / "0" / "1").stat().st_mtime_ns
        last = (checkpoint / "commits" / str(self.batches - 1)).stat().st_mtime_ns
        return (last - first) / 1e9


def bare(bench: Bench, name: str) -> float:
    """Spark's own sink."""
    form = {"files": "parquet"}.get(name, name)
    return bench.run(lambda writer: writer.format(form).option("path", str(bench.folder / "out")))


def managed(bench: Bench, name: str) -> float:
    """The sink of Slackwater, claimed and checked as a run does."""
    out = bench.folder / "out"
    sink: Sink = files("parquet", out) if name == "files" else delta(out)
    open_output(sink.identity()).claim(Owner(CONTEXT.stream_id, CONTEXT.stream, "bench"))
    sink.check(bench.rows(), CONTEXT)
    return bench.run(lambda writer: sink.attach(writer, CONTEXT))


SIDES: dict[str, Callable[[Bench, str], float]] = {"bare": bare, "managed": managed}


def lay_down(folder: Path, count: int) -> Path:
    """Input files of a few rows, with times of change that put them in order."""
    folder.mkdir()
    for number in range(count):
        file = folder / f"{number:05d}.json"
        rows = ({"id": number * ROWS + row, "text": f"row {row}"} for row in range(ROWS))
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))
    return folder


def run_rounds(
    folder: Path, spark: SparkSession, names: list[str], batches: int, rounds: int
) -> dict[str, list[float]]:
    """Both sides of each sink in turns, every other round backwards; the ratios of the rounds that count."""
    source = lay_down(folder / "in", batches)
    ratios: dict[str, list[float]] = {name: [] for name in names}
    deadline = time.monotonic() + MOST_S
    for number in range(rounds + 1):
        if number > 1 and time.monotonic() > deadline:
            print(f"stopped after {number - 1} of {rounds} rounds, to finish in under 8 minutes", flush=True)
            break
        for name in names:
            taken: dict[str, float] = {}
            for side in SIDES if number % 2 else reversed(SIDES):
                bench = Bench(spark, source, folder / f"{number}-{name}-{side}", batches)
                bench.folder.mkdir()
                taken[side] = SIDES[side](bench, name)
                shutil.rmtree(bench.folder)
                note = "" if number else "  (warm-up)"
                print(f"round {number}  {name:6} {side:8} {taken[side]:7.2f} s{note}", flush=True)
            if number:
                ratios[name].append(taken["managed"] / taken["bare"])
    return ratios


def main() -> None:
    """Parse, measure, report; exit code 1 where the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--sink", action="append", choices=["files", "delta"], help="this sink only; may be repeated")
    options = parser.parse_args()
    names = options.sink or ["files", "delta"]
    connectors = ("delta",) if "delta" in names else ()
    try:
        spark = start_session(SessionOptions("sink overhead", connectors=connectors), print)
    except SlackwaterError as error:
        print(f"benchmarks/sink_overhead.py: {error}", file=sys.stderr)
        print(f"hint: {error.hint}" if error.hint else "", file=sys.stderr)
        sys.exit(error.exit_code)
    try:
        with tempfile.TemporaryDirectory(prefix="slackwater-benchmark-") as folder:
            ratios = run_rounds(Path(folder), spark, names, options.batches, options.rounds)
    finally:
        end_session(spark)
    for name, found in ratios.items():
        spread = f"{min(found):.3f} to {max(found):.3f}"
        print(f"sink overhead: {name} ratio {statistics.median(found):.3f} ({spread}), goal at most {GOAL:.2f}")
    sys.exit(0 if all(statistics.median(found) <= GOAL for found in ratios.values()) else 1)


if __name__ == "__main__":
    main()
