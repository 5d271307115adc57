"""How the time of a replay falls with executors: a standalone cluster with one worker of one core, and with two.

    python benchmarks/executors.py [--rounds N]

One stream with state is run on the cluster. Then its checkpoint is deleted and rebuilt, in turns by one executor and by
two. Each batch reads several files whose rows take long to compute; a batch of the rebuild is timed from the commit of
the batch before to its own. Needs Java 17.
"""

from __future__ import annotations

import sys
from pathlib import Path

# This folder has a file with the name of a module of the standard library, and Python searches the folder first.
if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import importlib.util

if importlib.util.find_spec("slackwater") is None:
    print("benchmarks/executors.py: the slackwater package is not installed", file=sys.stderr)
    print("hint: activate the development environment (scripts/setup)", file=sys.stderr)
    sys.exit(9)

import argparse
import itertools
import json
import os
import shutil
import statistics
import subprocess
import tempfile

from tests.support.standalone_cluster import StandaloneCluster, standalone_cluster

BATCHES, FILES, ROWS = 6, 4, 1500
GOAL = 0.75
"""The time with two executors over that with one. Half would be all of it, but the driver uses the cores, too."""
PIPELINE = """
import slackwater as sw
from pyspark.sql import functions as F

pipeline = sw.Pipeline("bench")


@pipeline.stream(sink=sw.sinks.files("parquet", "{folder}/out"))
def rebuilt(spark):
    rows = spark.readStream.schema("at TIMESTAMP, n LONG").option("maxFilesPerTrigger", {files}).json("{folder}/in")
    slow = F.expr("aggregate(sequence(1, 20000), 0L, (found, i) -> pmod(found + hash(i, n), 1000003))")
    rows = rows.repartition({files}).select("at", slow.alias("n"))
    return rows.withWatermark("at", "1 day").groupBy(F.window("at", "1 day")).agg(F.sum("n").alias("n"))
"""


def main() -> int:
    """Measure, and print the figures. Exit code 1 where the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1, metavar="N")
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory(prefix="slackwater-benchmark-") as name:
        folder = Path(name)
        _lay_down(folder)
        with standalone_cluster(folder / "first", 2) as cluster:
            _slackwater(folder, cluster, "run", "bench.py", "--until-caught-up")
        taken: dict[int, list[float]] = {1: [], 2: []}
        for number, workers in itertools.product(range(rounds), taken):
            with standalone_cluster(folder / f"cluster-{number}-{workers}", workers) as cluster:
                taken[workers] += _rebuilt_s(folder, cluster)
    one, two = (statistics.median(taken[workers]) for workers in taken)
    print(json.dumps({"one_s": round(one, 2), "two_s": round(two, 2), "ratio": round(two / one, 2), "goal": GOAL}))
    return 0 if two / one <= GOAL else 1


def _lay_down(folder: Path) -> None:
    """The pipeline, and for each batch its files: a minute apart, so that one window has all rows."""
    (folder / "bench.py").write_text(PIPELINE.format(folder=folder, files=FILES))
    (folder / "in").mkdir()
    for number in range(BATCHES * FILES):
        rows = ({"at": f"2024-01-01T00:{number:02}:00Z", "n": row} for row in range(ROWS))
        file = folder / "in" / f"{number:02}.json"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))


def _rebuilt_s(folder: Path, cluster: StandaloneCluster) -> list[float]:
    """How long each batch of a rebuild took, after the first one, in which the executors load their classes."""
    checkpoints = folder / ".slackwater" / "streams" / "bench" / "rebuilt" / "checkpoints"
    generation = max(checkpoints.glob("[0-9]*"))
    shutil.rmtree(generation)
    plan = f"plan-{generation.name}.json"
    _slackwater(folder, cluster, "plan", "rebuild", "rebuilt", "--out", plan)
    _slackwater(folder, cluster, "apply", plan, "--yes")
    commits = max(checkpoints.glob("[0-9]*")) / "commits"
    written = [(commits / str(batch)).stat().st_mtime for batch in range(BATCHES)]
    return [later - earlier for earlier, later in itertools.pairwise(written)]


def _slackwater(folder: Path, cluster: StandaloneCluster, *arguments: str) -> None:
    """Run a command on the cluster. Ends the benchmark where it fails."""
    command = [sys.executable, "-m", "slackwater", *arguments, *cluster.arguments]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise SystemExit(f"slackwater {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    sys.exit(main())
