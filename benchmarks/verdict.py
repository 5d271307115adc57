"""What the verdict on a query's code costs compared with Spark's start: the first one of a new JVM, as each start pays
it.

    python benchmarks/verdict.py [PIPELINE ...] [--rounds 5]

A round is one new process for each pipeline file: it starts Spark, builds the query, and times what `slackwater run`
adds for the verdict: reading the code that the function reaches, the query's plan and its comparison with a recorded
program. Without files it takes one pipeline of each shape of tests/runtime/verdict/bases.py.
"""

from __future__ import annotations

import sys
from pathlib import Path

# This folder has a file with the name of a module of the standard library; the tests are packages of the folder above.
if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import importlib.util

if importlib.util.find_spec("slackwater") is None:
    print("benchmarks/verdict.py: the slackwater package is not installed", file=sys.stderr)
    print("hint: activate the development environment (scripts/setup)", file=sys.stderr)
    sys.exit(9)

import argparse
import itertools
import json
import os
import statistics
import subprocess
import tempfile
import time

from slackwater.core.program import Program
from slackwater.diagnose.program_changes import verdict
from slackwater.runtime.loader import load
from slackwater.runtime.run.query import BuiltStream
from slackwater.runtime.session import SessionOptions
from slackwater.runtime.session.session import start_session
from tests.runtime.verdict.edits import BASES

GOAL_S = 0.3
SHAPES = ("tumbling", "chained", "session", "inner", "dedup")


def main() -> None:
    """Measure, or be one of the processes that are measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pipelines", nargs="*", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        print(json.dumps(measured(options.one)), flush=True)
        # The JVM ends with this process: what follows is not measured.
        os._exit(0)
    with tempfile.TemporaryDirectory(prefix="slackwater-benchmark-") as folder:
        files = options.pipelines or [Path(folder, f"{shape}.py") for shape in SHAPES]
        for file in () if options.pipelines else files:
            file.write_text(BASES[file.stem])
        slowest = max(_reported(file, _rounds(file, options.rounds)) for file in files)
    print(f"verdict: at most {slowest:.3f} s by medians, goal at most {GOAL_S} s")
    sys.exit(0 if slowest <= GOAL_S else 1)


def measured(file: Path) -> dict[str, float]:
    """Seconds of Spark's start, of building the first query of a pipeline, and of its verdict."""
    times = [time.perf_counter()]
    loaded = load(str(file))
    spark = start_session(SessionOptions("verdict", "local[2]", {}, loaded.connectors), lambda _: None)
    times.append(time.perf_counter())
    definition = next(iter(loaded.pipeline.streams.values()))
    built = BuiltStream(definition, definition.function(spark), frozenset())
    times.append(time.perf_counter())
    now = built.program
    if now is None:
        sys.exit(f"{file}: the program of the query cannot be read")
    verdict(Program.from_json(json.loads(json.dumps(now.as_json()))), now)
    times.append(time.perf_counter())
    return dict(zip(("start", "build", "verdict"), (b - a for a, b in itertools.pairwise(times)), strict=True))


def _rounds(file: Path, rounds: int) -> list[dict[str, float]]:
    samples = []
    with tempfile.TemporaryDirectory(prefix="slackwater-benchmark-") as folder:
        for name in ("landing", "orders"):
            (Path(folder) / name).mkdir()
        for _ in range(rounds):
            command = [sys.executable, str(Path(__file__).resolve()), "--one", str(file.resolve())]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode:
                sys.exit(done.stderr or f"{file}: exit code {done.returncode}")
            samples.append(json.loads(done.stdout.splitlines()[-1]))
    return samples


def _reported(file: Path, samples: list[dict[str, float]]) -> float:
    """Print the medians of one pipeline; that of the verdict."""
    start, build, taken = (statistics.median(one[part] for one in samples) for part in ("start", "build", "verdict"))
    print(
        f"{file.name:<20} Spark's start {start:5.2f} s  query {build:5.2f} s  verdict {taken:5.3f} s"
        f" (slowest {max(one['verdict'] for one in samples):.3f}; {taken / start:.1%} of Spark's start)",
        flush=True,
    )
    return taken


if __name__ == "__main__":
    main()
