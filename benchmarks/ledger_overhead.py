"""What the ledger costs: the same stream with and without ledger, listener and watcher, in turns, in one Spark session.

    python benchmarks/ledger_overhead.py [--batches 50] [--rounds 20] [--each]

``application`` is the same query in a program that starts it by itself, as ``slackwater run app.py`` runs it.

A file source hands over one small file for each batch, so a batch is as short as it can be and every cost shows.
Time is taken from the files that Spark writes, ``sources/0/1`` to the last of ``commits/``, which is the same for all
variants and does not depend on how a query is started or awaited. The first rounds warm the JVM up and do not count.
Two runs of the same variant differ by some percent on a small machine, more than what is measured: many short rounds
and the median of their ratios tell more than a few long ones.
"""

from __future__ import annotations

import sys

# This folder has a file with the name of a module of the standard library, and Python searches the folder first.
if __name__ == "__main__":
    del sys.path[0]

import importlib.util

if importlib.util.find_spec("slackwater") is None:
    print("benchmarks/ledger_overhead.py: the slackwater package is not installed", file=sys.stderr)
    print("hint: activate the development environment (scripts/setup)", file=sys.stderr)
    sys.exit(9)

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from slackwater.core.errors import SlackwaterError
from slackwater.core.program import Trigger
from slackwater.core.records import BatchRecord, StreamRecord
from slackwater.core.reference import reference_of
from slackwater.core.sink import WriteContext
from slackwater.ledger.home import Home
from slackwater.ledger.lease_keeper import LeaseKeeper
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.recording.log_copier import LogCopier
from slackwater.ledger.recording.watcher import Watcher
from slackwater.runtime.application.running import run_application
from slackwater.runtime.pipeline import Pipeline
from slackwater.runtime.run.before_start import register
from slackwater.runtime.run.listener import ProgressRecorder, RecordedQuery, make_listener
from slackwater.runtime.run.query import BuiltStream, start
from slackwater.runtime.run.runner import ASK_LEDGER_S, POLL_S
from slackwater.runtime.run.stream_run import RunServices, StreamRun
from slackwater.runtime.session import SessionOptions, spark_version
from slackwater.runtime.session.session import driver_jvm_pid, end_session, start_session
from slackwater.sinks import files
from slackwater.sinks.common.registry import open_output
from slackwater.storage.open import open_read_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 20
GOAL = 1.02
MEASURED = ("ledger", "application")
"""The variants that have the goal."""
WARM_UP = 2
"""Rounds that do not count: the JVM compiles less in each."""
MOST_S = 400
"""No round starts later than this, so that the benchmark finishes in under 8 minutes on a slow machine."""
ASK_LEDGER_EACH = round(ASK_LEDGER_S / POLL_S)


@dataclass(frozen=True, slots=True)
class Sample:
    """One run of the stream: seconds on the clock, and CPU seconds of Python and the JVM together."""

    clock_s: float
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Bench:
    """What a variant needs to run the stream once, in a folder of its own."""

    spark: SparkSession
    source: Path
    folder: Path
    batches: int

    @property
    def checkpoint(self) -> Path:
        """Where the query's checkpoint lies when the runner puts it there."""
        return Path(Home(self.folder / "home").checkpoint("bench", "rows", 1))

    def built(self) -> BuiltStream:
        """The stream: rows as they are, from files to files."""
        pipeline = Pipeline("bench")
        pipeline.stream(name="rows", sink=files("parquet", str(self.folder / "out")))(lambda spark: spark)
        reader = self.spark.readStream.schema("id LONG, text STRING").option("maxFilesPerTrigger", 1)
        return BuiltStream(pipeline.streams["rows"], reader.json(str(self.source)), frozenset())


TRIGGER, CONTEXT = Trigger("available-now"), WriteContext("bench", "bench/rows", 1, "append")


def plain(bench: Bench) -> None:
    """PySpark alone."""
    start(bench.built(), str(bench.checkpoint), TRIGGER, CONTEXT).awaitTermination()


def listener_only(bench: Bench) -> None:
    """With the listener and its recorder, without the watcher."""
    with _ledger(bench) as (ledger, record), _recording(bench, ledger) as recorder:
        recorder.follow(record.full_name, RecordedQuery(record.full_name, 1))
        plain(bench)


def watcher_only(bench: Bench) -> None:
    """With the watcher, without the listener."""
    with _ledger(bench) as (ledger, record):
        output = open_output(record.sink)
        watcher = Watcher(LogCopier(ledger, record.full_name, 1, open_read_store(str(bench.checkpoint)), output))
        watcher.start()
        plain(bench)
        watcher.stop()


def whole(bench: Bench) -> None:
    """As ``slackwater run`` runs it."""
    home = Home(bench.folder / "home")
    with _ledger(bench) as (ledger, record), _recording(bench, ledger) as recorder:
        built = bench.built()
        with LeaseKeeper([built.definition.full_name], home, ledger, "run", print) as leases:
            services = RunServices(home, ledger, recorder, spark_version(), 0, print)
            run = StreamRun(services, record, built, TRIGGER, leases.fence(record.full_name))
            run.start()
            looks = 0
            while run.outcome is None:
                looks += 1
                if looks % ASK_LEDGER_EACH == 0:
                    run.stop_requested()
                run.poll()
                time.sleep(POLL_S)
        if run.outcome.end != "finished":
            sys.exit(f"the stream {run.outcome.end}: {run.outcome.reason}")


APPLICATION = """
import sys
from pyspark.sql import SparkSession

source, output, checkpoint = sys.argv[1:]
rows = SparkSession.builder.getOrCreate().readStream.schema("id LONG, text STRING").option("maxFilesPerTrigger", 1)
writer = rows.json(source).writeStream.queryName("rows").format("parquet").trigger(availableNow=True)
writer.option("checkpointLocation", checkpoint).start(output).awaitTermination()
"""


class Silent:
    """Shows nothing of a run."""

    def say(self, text: str) -> None:
        """Show no message."""

    def state(self, stream: str, state: str) -> None:
        """Show no state."""

    def batch(self, batch: BatchRecord) -> None:
        """Show no batch."""

    def idle(self, stream: str) -> None:
        """Show no idle trigger."""

    def restarted(self, stream: str) -> None:
        """Show no restart."""


def application(bench: Bench) -> None:
    """As ``slackwater run app.py`` runs a program that starts the query."""
    home, program = Home(bench.folder / "home"), bench.folder / "app.py"
    bench.folder.mkdir()
    program.write_text(APPLICATION, encoding="utf-8")
    given = (str(bench.source), str(bench.folder / "out"), str(bench.checkpoint))
    with Ledger.open(home.ledger_url, create=True) as ledger:
        reference = reference_of(str(program), given)
        outcomes, _ = run_application(reference, home, ledger, Silent(), SessionOptions())
    if [one.end for one in outcomes] != ["finished"]:
        sys.exit(f"the application ended with {outcomes}")


@contextmanager
def _ledger(bench: Bench) -> Iterator[tuple[Ledger, StreamRecord]]:
    home = Home(bench.folder / "home")
    with Ledger.open(home.ledger_url, create=True) as ledger:
        yield ledger, register(bench.built().definition, str(bench.folder / "bench.py"), home, ledger)


@contextmanager
def _recording(bench: Bench, ledger: Ledger) -> Iterator[ProgressRecorder]:
    recorder = ProgressRecorder(ledger)
    listener = make_listener(recorder.put)
    bench.spark.streams.addListener(listener)
    try:
        yield recorder
    finally:
        bench.spark.streams.removeListener(listener)
        recorder.close()


VARIANTS: dict[str, Callable[[Bench], None]] = {
    "plain": plain,
    "ledger": whole,
    "application": application,
    "listener only": listener_only,
    "watcher only": watcher_only,
}


def measure(variant: Callable[[Bench], None], bench: Bench) -> Sample:
    """Run the stream once. The folder is removed afterwards."""
    jvm = driver_jvm_pid(bench.spark)
    cpu_before_s = _cpu_s(os.getpid()) + _cpu_s(jvm)
    try:
        variant(bench)
        cpu_s = _cpu_s(os.getpid()) + _cpu_s(jvm) - cpu_before_s
        first = (bench.checkpoint / "sources" / "0" / "1").stat().st_mtime_ns
        last = (bench.checkpoint / "commits" / str(bench.batches - 1)).stat().st_mtime_ns
        return Sample((last - first) / 1e9, cpu_s)
    finally:
        shutil.rmtree(bench.folder)


def _cpu_s(pid: int) -> float:
    """User and system time of a process, fields 14 and 15 of ``/proc/<pid>/stat``; 0 where there is no ``/proc``."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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
) -> dict[str, list[Sample]]:
    """All variants in turns; every other round goes backwards, so that none always comes after the same one."""
    source = lay_down(folder / "in", batches)
    samples: dict[str, list[Sample]] = {name: [] for name in names}
    deadline = time.monotonic() + MOST_S
    for number in range(1 - WARM_UP, rounds + 1):
        if number > 1 and time.monotonic() > deadline:
            print(f"stopped after {number - 1} of {rounds} rounds, to finish in under 8 minutes", flush=True)
            break
        for name in names if number % 2 else reversed(names):
            sample = measure(
                VARIANTS[name], Bench(spark, source, folder / f"{number}-{name.replace(' ', '-')}", batches)
            )
            note = "" if number > 0 else "  (warm-up)"
            print(f"round {number}  {name:14} {sample.clock_s:7.2f} s  cpu {sample.cpu_s:6.2f} s{note}", flush=True)
            if number > 0:
                samples[name].append(sample)
    return samples


def report(samples: dict[str, list[Sample]]) -> float:
    """Print medians and ratios; the larger ratio of those with a goal.

    Ratios are of neighbours in a round: the machine drifts.
    """
    clock: dict[str, float] = {}
    for name, taken in samples.items():
        pairs = list(zip(taken, samples["plain"], strict=True))
        ratios = [one.clock_s / other.clock_s for one, other in pairs]
        clock[name] = statistics.median(ratios)
        cpu = statistics.median(one.cpu_s / other.cpu_s if other.cpu_s else 1 for one, other in pairs)
        print(
            f"{name:14} median {statistics.median(sample.clock_s for sample in taken):7.2f} s  "
            f"ratio {clock[name]:.3f} ({min(ratios):.3f} to {max(ratios):.3f})  cpu ratio {cpu:.3f}"
        )
    return max(clock[name] for name in MEASURED)


def main() -> None:
    """Parse, measure, report; exit code 1 where the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--each", action="store_true", help="measure listener and watcher by themselves, too")
    options = parser.parse_args()
    names = list(VARIANTS) if options.each else ["plain", *MEASURED]
    try:
        spark = start_session(SessionOptions("ledger overhead"), print)
    except SlackwaterError as error:
        print(f"benchmarks/ledger_overhead.py: {error}", file=sys.stderr)
        print(f"hint: {error.hint}" if error.hint else "", file=sys.stderr)
        sys.exit(error.exit_code)
    try:
        with tempfile.TemporaryDirectory(prefix="slackwater-benchmark-") as folder:
            samples = run_rounds(Path(folder), spark, names, options.batches, options.rounds)
    finally:
        end_session(spark)
    ratio = report(samples)
    print(f"ledger overhead: ratio {ratio:.3f}, goal at most {GOAL:.2f}")
    sys.exit(0 if ratio <= GOAL else 1)


if __name__ == "__main__":
    main()
