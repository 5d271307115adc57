"""How fast a checkpoint is read, each figure a ratio measured in one run.

    python benchmarks/inspect.py [process] [names] [state] [requests]

``process``   the whole ``slackwater inspect`` process against a PySpark process that reads ``state-metadata`` and the
              newest logs of the same checkpoint
``names``     a generated checkpoint of 200 partitions x 3 operators x 100 versions against a bare ``os.scandir`` walk
``state``     1,000,000 rows of a windowed count into Arrow against Spark's ``statestore`` reader in a warm session
``requests``  the same 60,000 files on an S3 API, in a home there: how many requests ``inspect`` and ``status`` make
"""

from __future__ import annotations

import sys
from pathlib import Path

# In place of this folder: this file has the name of a module of the standard library.
if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])

# ruff: noqa: PLC0415
import argparse
import importlib.util
import json
import os
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from typing import Any

from benchmarks.checkpoints import VERSIONS, large_files, make_large

ROOT = Path(__file__).resolve().parents[1]
ROWS = 1_000_000
NEEDS = {
    "process": ("slackwater", "pyspark"),
    "names": ("slackwater",),
    "state": ("slackwater", "pyspark", "pandas", "pyarrow"),
    "requests": ("slackwater", "s3fs", "moto"),
}
"""Packages that each benchmark imports; those with PySpark need Java 17 too."""
GOALS = {"process": 120, "names": 1.3}


def main() -> int:
    """Run the benchmarks named on the command line, all by default. Exit code 9 where something is missing."""
    if sys.argv[1:2] == ["--child"]:
        return CHILDREN[sys.argv[2]](*sys.argv[3:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one or more of {', '.join(NEEDS)} (default: all)")
    asked = parser.parse_args().names or list(NEEDS)
    unknown = [name for name in asked if name not in NEEDS]
    if unknown:
        parser.error(f"unknown benchmark {', '.join(unknown)}; choose from {', '.join(NEEDS)}")
    missing = missing_for(asked)
    if missing:
        print(f"benchmarks/inspect.py: missing: {', '.join(missing)}", file=sys.stderr)
        print("hint: activate the development environment (scripts/setup), or name other benchmarks", file=sys.stderr)
        return 9
    for name in asked:
        with tempfile.TemporaryDirectory(prefix="slackwater-benchmark-") as folder:
            print(f"{name}: {json.dumps(BENCHMARKS[name](Path(folder)))}", flush=True)
    return 0


def missing_for(names: list[str]) -> list[str]:
    """Packages, and Java, that these benchmarks need and that are not installed."""
    packages = dict.fromkeys(package for name in names for package in NEEDS[name])
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    if "pyspark" in packages and not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        missing.append("Java 17")
    return missing


def seconds(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """How long one call takes."""
    start = clock()
    work()
    return clock() - start


def show(ours: list[float], theirs: list[float]) -> dict[str, object]:
    """Both sides' minimum and median, and their ratio by medians."""
    return {
        "ours_s": [round(min(ours), 4), round(statistics.median(ours), 4)],
        "theirs_s": [round(min(theirs), 4), round(statistics.median(theirs), 4)],
        "times_faster": round(statistics.median(theirs) / statistics.median(ours), 2),
    }


# ------------------------------------------------------------------------------------------------------------- process


def benchmark_process(folder: Path) -> dict[str, object]:
    """Whole processes in turns; ours is so short that it runs five times for each of theirs."""
    checkpoint = folder / "checkpoint"
    child("write_small", str(folder), str(checkpoint))
    command = [str(Path(sys.executable).with_name("slackwater")), "inspect", str(checkpoint)]
    ours, theirs = [], []
    for _ in range(3):
        ours += [seconds(lambda: run(command)) for _ in range(5)]
        theirs.append(seconds(lambda: child("spark_metadata", str(checkpoint))))
    return show(ours, theirs)


def run(command: list[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT)


def child(name: str, *arguments: str) -> None:
    run([sys.executable, __file__, "--child", name, *arguments])


def write_small(folder: str, checkpoint: str) -> int:
    """A windowed count of a few batches."""
    write_counts(session(), Path(folder), checkpoint, rows=1000, files=5, provider="hdfs")
    return 0


def spark_metadata(checkpoint: str) -> int:
    """What an inspection shows, read by Spark."""
    spark = session()
    spark.read.format("state-metadata").load(checkpoint).collect()
    for log in ("offsets", "commits"):
        newest = max(
            (path for path in (Path(checkpoint) / log).iterdir() if path.name.isdigit()),
            key=lambda path: int(path.name),
        )
        spark.read.text(str(newest)).collect()
    return 0


# --------------------------------------------------------------------------------------------------------------- names


def benchmark_names(folder: Path) -> dict[str, object]:
    """In one process, alternating; and the memory of a process that does nothing else."""
    from slackwater.cli.verbs.inspect import inspect_checkpoint

    make_large(folder)
    walk(str(folder))
    inspect_checkpoint(str(folder))
    ours, theirs = [], []
    for _ in range(15):
        # Processor time: one thread without waiting, and other programs of this machine do not count.
        theirs.append(seconds(lambda: walk(str(folder)), time.process_time))
        ours.append(seconds(lambda: inspect_checkpoint(str(folder)), time.process_time))
    memory = subprocess.run(
        [sys.executable, __file__, "--child", "memory", str(folder)],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    shown = show(ours, theirs)
    del shown["times_faster"]
    times = round(statistics.median(ours) / statistics.median(theirs), 2)
    return {
        **shown,
        "times_a_bare_walk": times,
        "by_minima": round(min(ours) / min(theirs), 2),
        "memory_mb": float(memory.stdout),
    }


def walk(path: str) -> int:
    """A bare walk: every name once."""
    count, pending = 0, [path]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir():
                    pending.append(entry.path)
                else:
                    count += 1
    return count


def memory(folder: str) -> int:
    """Peak memory of an inspection by itself."""
    from slackwater.cli.verbs.inspect import inspect_checkpoint

    inspect_checkpoint(folder)
    print(round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1))
    return 0


# --------------------------------------------------------------------------------------------------------------- state


def benchmark_state(folder: Path) -> dict[str, object]:
    """A warm Spark session and this process, alternating, to Arrow tables of the same rows."""
    from slackwater.cli.verbs.inspect import StateRequest
    from slackwater.cli.verbs.inspect.rows import inspect_state

    spark = session()
    results: dict[str, object] = {}
    for provider in ("hdfs", "rocksdb"):
        checkpoint = str(folder / f"checkpoint-{provider}")
        write_counts(spark, folder / provider, checkpoint, rows=ROWS, files=1, provider=provider)

        def spark_reads(checkpoint: str = checkpoint) -> int:
            return int(spark.read.format("statestore").load(checkpoint).toArrow().num_rows)

        def we_read(checkpoint: str = checkpoint) -> int:
            return int(inspect_state(checkpoint, StateRequest(0))[1].table.num_rows)

        if not spark_reads() == we_read() == ROWS:
            raise SystemExit(f"{provider}: not all rows were read")
        ours, theirs = [], []
        for _ in range(7):
            theirs.append(seconds(spark_reads))
            ours.append(seconds(we_read))
        results[provider] = show(ours, theirs)
    spark.stop()
    return results


def session() -> Any:
    """A local session that logs errors only."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", "2")
    spark = builder.config("spark.ui.enabled", "false").config("spark.driver.memory", "4g").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    # The statestore reader fails in a session whose stream manager was never touched.
    _ = spark.streams.active
    return spark


def write_counts(spark: Any, folder: Path, checkpoint: str, *, rows: int, files: int, provider: str) -> None:
    """The state of a windowed count with one row for each of ``rows`` keys."""
    from pyspark.sql import functions

    source = str(folder / "input")
    moment = functions.timestamp_seconds(functions.lit(1_704_067_200) + functions.col("id") % 1000)
    data = spark.range(rows).select(moment.alias("ts"), functions.concat(functions.lit("key-"), "id").alias("key"))
    data.repartition(files).write.parquet(source)
    classes = {"hdfs": "HDFSBackedStateStoreProvider", "rocksdb": "RocksDBStateStoreProvider"}
    name = f"org.apache.spark.sql.execution.streaming.state.{classes[provider]}"
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", name)
    stream = spark.readStream.schema("ts timestamp, key string").option("maxFilesPerTrigger", 1).parquet(source)
    counted = stream.groupBy(functions.window("ts", "1 minute"), "key").count()
    writer = counted.writeStream.format("noop").outputMode("update").option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()


# ------------------------------------------------------------------------------------------------------------ requests


def benchmark_requests(folder: Path) -> dict[str, object]:
    """The files are put straight into the server; every request of ``inspect`` and of ``status`` is counted."""
    from benchmarks.counted_s3 import BUCKET, counted_s3
    from slackwater.cli.verbs.inspect import inspect_checkpoint
    from slackwater.cli.verbs.status import read_status
    from slackwater.core.settings import Settings

    settings = Settings(f"s3a://{BUCKET}/home", str(folder / "ledger.db"))
    reads: dict[str, Callable[[], object]] = {
        "inspect": lambda: inspect_checkpoint(f"s3a://{BUCKET}/{STORED_CHECKPOINT}"),
        "status": lambda: read_status(settings),
    }
    shown: dict[str, object] = {}
    with counted_s3() as s3:
        files = _put_home(folder, str(settings.home), s3.put)
        for name, read in reads.items():
            s3.asked.clear()
            taken = seconds(read)
            if not s3.asked:
                raise SystemExit("no request was counted")
            shown[name] = {"requests": dict(s3.asked), "seconds": round(taken, 2)}
    return {"files": files, "pages_of_1000": -(-files // 1000), **shown}


STORED_CHECKPOINT = "home/streams/clicks/per_page/checkpoints/0001"


def _put_home(folder: Path, location: str, put: Callable[[str, bytes], object]) -> int:
    """A home on the server, with a stream whose checkpoint has the state of ``large_files``; the checkpoint's files."""
    from slackwater.ledger.ledger import Ledger
    from tests.support.homes import HomeSpec, make_home

    newest = VERSIONS - 1
    home = make_home(folder, HomeSpec(planned=newest, committed=newest, state=newest, written=newest))
    for file in home.glob("ledger.db*"):
        shutil.move(file, folder)
    (home / "home.json").unlink(missing_ok=True)
    with Ledger.open(folder / "ledger.db", create=False) as ledger:
        ledger.relocate(str(home), location)
    for file in home.rglob("stream.json"):
        file.write_text(file.read_text().replace(str(home), location))
    _compact(home / STORED_CHECKPOINT.partition("/")[2] / "sources" / "0")
    files = [(f"home/{path.relative_to(home)}", path.read_bytes()) for path in home.rglob("*") if path.is_file()]
    files = [file for file in files if "/state/" not in file[0]]
    files += [(f"{STORED_CHECKPOINT}/{name}", data) for name, data in large_files() if name.startswith("state/")]
    for name, data in files:
        put(name, data)
    return sum(name.startswith(STORED_CHECKPOINT) for name, _ in files)


def _compact(log: Path) -> None:
    """The log of a file source as Spark keeps it: one compacted entry that has the lines of all."""
    entries = sorted((path for path in log.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))
    lines = [line for entry in entries for line in entry.read_text().split("\n")[1:]]
    (log / f"{entries[-1].name}.compact").write_text("\n".join(["v1", *lines]))
    entries[-1].unlink()


CHILDREN: dict[str, Callable[..., int]] = {
    "write_small": write_small, "spark_metadata": spark_metadata, "memory": memory,
}  # fmt: skip
BENCHMARKS: dict[str, Callable[[Path], dict[str, object]]] = {
    "process": benchmark_process, "names": benchmark_names, "state": benchmark_state, "requests": benchmark_requests,
}  # fmt: skip

if __name__ == "__main__":
    sys.exit(main())
