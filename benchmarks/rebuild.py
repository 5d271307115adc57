"""What a rebuild reads and takes: a stream with a long history, of which few batches matter for its state.

    python benchmarks/rebuild.py [windows] [sessions] [joined] [--batches 1000]

For each kind of state one stream processes its input, one file a batch; that run is the full recompute from the
earliest batch that a rebuild is compared with. Then its checkpoint is deleted, and rebuilt by ``plan rebuild`` and
``apply``, with Spark's start. The benchmark knows each row: which of them are in the state is worked out here, and
not asked of the product.

A JVM becomes faster over hundreds of batches. A replayed batch is compared with Spark's own trigger of the same batch
and, which shows what the replay itself costs, with the triggers of the first batches of the run, in a JVM as young as
that of ``apply``.
"""

from __future__ import annotations

import sys

# This folder has a file with the name of a module of the standard library, and Python searches the folder first.
if __name__ == "__main__":
    del sys.path[0]

import importlib.util

if importlib.util.find_spec("slackwater") is None:
    print("benchmarks/rebuild.py: the slackwater package is not installed", file=sys.stderr)
    print("hint: activate the development environment (scripts/setup)", file=sys.stderr)
    sys.exit(9)

import argparse
import itertools
import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

ROWS_A_FILE = 60
FILE_MINUTES = 6
BURST, PAUSE_MINUTES = 10, 600
"""Sessions have a pause after so many files."""
WINDOW_MINUTES, GAP_MINUTES, BOUND_MINUTES, DELAY_MINUTES = 60, 5, 54, 6
KEYS = 20
START = datetime(2024, 1, 1, tzinfo=UTC)
ROWS_GOAL, WALL_GOAL, BATCH_GOAL = 1.0, 1 / 20, 1.3
PIPELINE = """
import slackwater as sw
from pyspark.sql import functions as F

pipeline = sw.Pipeline("bench")


def read(spark, name):
    rows = spark.readStream.schema("ts TIMESTAMP, page STRING, n LONG").option("maxFilesPerTrigger", 1).json(name)
    return rows.withWatermark("ts", "{delay} minutes")


@pipeline.stream(sink=sw.sinks.files("parquet", "out"))
def rebuilt(spark):
    rows = read(spark, "rows")
    return {query}
"""
CONF = ("--conf", "spark.sql.shuffle.partitions=2", "--conf", "spark.ui.enabled=false")
Minutes = Sequence[float]
"""The event times of a file's rows, in minutes since the start."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of state: the query, its input, and which files have a row that is in its state at a watermark."""

    query: str
    file: Callable[[int], Minutes]
    inputs: tuple[str, ...]
    contributing: Callable[[Sequence[Minutes], float], set[int]]


def steady(number: int) -> Minutes:
    """Rows without a pause."""
    return [number * FILE_MINUTES + row * FILE_MINUTES / ROWS_A_FILE for row in range(ROWS_A_FILE)]


def bursts(number: int) -> Minutes:
    """The same with a pause after each burst."""
    return [minute + number // BURST * PAUSE_MINUTES for minute in steady(number)]


def in_open_windows(files: Sequence[Minutes], watermark: float) -> set[int]:
    """The files with a row whose window ends after the watermark."""
    return {
        number
        for number, minutes in enumerate(files)
        if any(minute // WINDOW_MINUTES * WINDOW_MINUTES + WINDOW_MINUTES > watermark for minute in minutes)
    }


def in_open_sessions(files: Sequence[Minutes], watermark: float) -> set[int]:
    """The files with a row of a session that ends after the watermark."""
    found: set[int] = set()
    for key in range(KEYS):
        of_key = sorted((minute, number) for number, minutes in enumerate(files) for minute in minutes[key::KEYS])
        sessions: list[list[tuple[float, int]]] = [[of_key[0]]]
        for before, row in itertools.pairwise(of_key):
            if row[0] > before[0] + GAP_MINUTES:
                sessions.append([])
            sessions[-1].append(row)
        found |= {number for one in sessions if one[-1][0] + GAP_MINUTES > watermark for _, number in one}
    return found


def to_be_joined(files: Sequence[Minutes], watermark: float) -> set[int]:
    """The files with a row of the left side that a row can still match; on the right side rows wait less."""
    return {number for number, minutes in enumerate(files) if any(one + BOUND_MINUTES >= watermark for one in minutes)}


KINDS = {
    "windows": Kind(
        f'rows.groupBy(F.window("ts", "{WINDOW_MINUTES} minutes"), "page").agg(F.sum("n").alias("n"))',
        steady,
        ("rows",),
        in_open_windows,
    ),
    "sessions": Kind(
        f'rows.groupBy(F.session_window("ts", "{GAP_MINUTES} minutes"), "page").agg(F.sum("n").alias("n"))',
        bursts,
        ("rows",),
        in_open_sessions,
    ),
    "joined": Kind(
        'rows.join(read(spark, "others").toDF("at", "other", "m"), F.expr("page = other AND n = m AND at BETWEEN ts '
        f"""AND ts + INTERVAL {BOUND_MINUTES} MINUTES"), "left_outer")""",
        steady,
        ("rows", "others"),
        to_be_joined,
    ),
}


@dataclass(frozen=True, slots=True)
class Bench:
    """A folder with the stream of one kind and its input."""

    folder: Path
    kind: Kind
    batches: int

    def lay_down(self) -> None:
        """The pipeline and one file for each batch and input."""
        (self.folder / "bench.py").write_text(PIPELINE.format(delay=DELAY_MINUTES, query=self.kind.query))
        for name, number in itertools.product(self.kind.inputs, range(self.batches)):
            file = self.folder / name / f"{number:05}.json"
            file.parent.mkdir(exist_ok=True)
            file.write_text("".join(map(_line, range(ROWS_A_FILE), self.kind.file(number))))
            os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))

    def slackwater(self, *arguments: str) -> float:
        """Seconds that a command took. Ends the benchmark where it fails."""
        started = time.perf_counter()
        command = [sys.executable, "-m", "slackwater", *arguments]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"slackwater {' '.join(arguments)}: exit code {done.returncode}\n{done.stderr}")
        return time.perf_counter() - started

    @property
    def checkpoints(self) -> Path:
        """Where the generations are."""
        return self.folder / ".slackwater" / "streams" / "bench" / "rebuilt" / "checkpoints"

    def minimum(self, target: int) -> int:
        """The rows of the batches from the first with a row in the state to the target."""
        files = [self.kind.file(number) for number in range(self.batches)]
        offsets = (self.checkpoints / "0002" / "offsets" / str(target)).read_text().splitlines()
        watermark_ms = int(json.loads(offsets[1])["batchWatermarkMs"])
        watermark = (datetime.fromtimestamp(watermark_ms / 1000, UTC) - START) / timedelta(minutes=1)
        first = min(self.kind.contributing(files, watermark))
        return (self.batches - first) * ROWS_A_FILE * len(self.kind.inputs)

    def triggers_s(self, batches: range) -> list[float]:
        """How long the triggers of batches took in the run that made the history."""
        with closing(sqlite3.connect(self.folder / ".slackwater" / "ledger.db")) as connection:
            rows = connection.execute("SELECT batch_id, durations_ms FROM batches WHERE generation = 1").fetchall()
        return [json.loads(text)["triggerExecution"] / 1000 for batch, text in rows if batch in batches]

    def replayed_s(self, batches: range) -> list[float]:
        """How long each batch of the rebuild took, from the commit of the one before to its own."""
        commits = [(self.checkpoints / "0002" / "commits" / str(batch)).stat().st_mtime for batch in batches]
        return [later - earlier for earlier, later in itertools.pairwise(commits)]


def _line(row: int, minute: float) -> str:
    time_of = (START + timedelta(minutes=minute)).isoformat(timespec="milliseconds")
    return json.dumps({"ts": time_of, "page": f"page-{row % KEYS}", "n": row}) + "\n"


def measured(name: str, batches: int, folder: Path) -> bool:
    """Measure one kind and print its figures; whether the goals are reached."""
    bench = Bench(folder, KINDS[name], batches)
    bench.lay_down()
    full_s = bench.slackwater("run", "bench.py", "--until-caught-up", *CONF)
    shutil.rmtree(bench.checkpoints / "0001")
    plan_s = bench.slackwater("plan", "rebuild", "rebuilt", "--out", "plan.json")
    apply_s = bench.slackwater("apply", "plan.json", "--yes", *CONF)
    plan = json.loads((folder / "plan.json").read_text())
    first, target = plan["facts"]["contributing"], plan["facts"]["target"]
    rows, least = plan["cost"]["apply"]["rows"], bench.minimum(target)
    # A batch without data has a trigger of its own; it is not what others cost.
    with_data = range(first, min(target + 1, batches))
    own_s, replayed_s = bench.triggers_s(with_data), bench.replayed_s(with_data)
    young_s = bench.triggers_s(range(len(replayed_s) + 1))
    replayed, own, young = map(statistics.median, (replayed_s, own_s, young_s))
    read = f"rows {rows:,} for {least:,} = {rows / least:.2f} (goal {ROWS_GOAL:.2f})"
    took = f"apply {apply_s:.1f} s of {full_s:.1f} s = 1/{full_s / apply_s:.0f} (goal 1/{1 / WALL_GOAL:.0f})"
    each = (
        f"{replayed:.2f} s of {own:.2f} s = {replayed / own:.2f} (goal {BATCH_GOAL}), of {young:.2f} s in a young JVM "
        f"= {replayed / young:.2f}"
    )
    print(
        f"{name}: batches {first}..{target} of {target + 1}; {read}; {took}, plan {plan_s:.1f} s; a replayed batch and "
        f"Spark's own trigger {each}",
        flush=True,
    )
    return rows / least <= ROWS_GOAL and apply_s / full_s <= WALL_GOAL and replayed / own <= BATCH_GOAL


def main() -> int:
    """Measure the kinds that are asked for, else all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", metavar="KIND", choices=[*KINDS, []], default=[])
    parser.add_argument("--batches", type=int, default=1000)
    options = parser.parse_args()
    reached = True
    for name in options.kinds or KINDS:
        with tempfile.TemporaryDirectory(prefix="slackwater-benchmark-") as folder:
            reached = measured(name, options.batches, Path(folder)) and reached
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
