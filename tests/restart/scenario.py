"""A workspace as a user has it: a pipeline file, its input, and the command line. Nothing of Slackwater is imported."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

from tests.support import warm_python
from tests.support.killing import kill_when, kill_when_held
from tests.support.outputs import Rows, manifest_ids, rows_of
from tests.support.warm_jvm import attached

SEED = 20240101
BATCHES = 14
ROWS_A_BATCH = 40
STREAM = "per_page"
AGGREGATES = 'F.sum("n").alias("n"), F.count("*").alias("clicks")'
UPGRADED = 'F.max("n").alias("most"), F.avg("n").alias("mean"), F.count("*").alias("clicks")'

PIPELINE = """
import slackwater as sw
from pyspark.sql import functions as F

pipeline = sw.Pipeline("web")


@pipeline.stream(sink=sw.sinks.files("parquet", "out"), output_mode="append")
def per_page(spark):
    clicks = {source}
    return (
        clicks.withWatermark("ts", "10 minutes")
        .groupBy(F.window("ts", "1 hour"), "page")
        .agg({aggregates})
    )
"""

WITH_SPARK = frozenset({"run", "check", "apply", "plan", "undo"})
SCHEMA = "ts timestamp, page string, n long"


def readings() -> Iterator[list[dict[str, object]]]:
    """Rows in batches: event time moves on 15 minutes a batch, with rows up to 40 minutes late."""
    dice = random.Random(SEED)
    for batch in range(BATCHES):
        minutes = [max(0, batch * 15 + dice.randint(-40, 14)) for _ in range(ROWS_A_BATCH)]
        yield [
            {
                "ts": f"2024-01-01T{minute // 60:02d}:{minute % 60:02d}:00Z",
                "page": f"page-{dice.randint(0, 3)}",
                "n": dice.randint(1, 9),
            }
            for minute in minutes
        ]


class Clicks(Protocol):
    """Where the rows come from."""

    def lay_down(self, folder: Path) -> None:
        """Make the input of a workspace."""

    def source(self) -> str:
        """The pipeline file's expression for the source."""


class FileClicks:
    def lay_down(self, folder: Path) -> None:
        (folder / "landing").mkdir()
        for number, rows in enumerate(readings()):
            file = folder / "landing" / f"clicks-{number:03d}.json"
            file.write_text("\n".join(json.dumps(row) for row in rows))
            os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))

    def source(self) -> str:
        return f'spark.readStream.schema("{SCHEMA}").option("maxFilesPerTrigger", 1).json("landing")'


class Workspace:
    """A folder with ``clicks.py``, its input, its home and its output."""

    def __init__(self, folder: Path, clicks: Clicks) -> None:
        self.folder = folder
        self._clicks = clicks
        self.output = folder / "out"
        self.stream_folder = folder / ".slackwater" / "streams" / "web" / STREAM
        clicks.lay_down(folder)
        self.write_pipeline(AGGREGATES)

    def write_pipeline(self, aggregates: str) -> None:
        text = PIPELINE.format(source=self._clicks.source(), aggregates=aggregates)
        (self.folder / "clicks.py").write_text(text)

    @property
    def checkpoint(self) -> Path:
        generation = json.loads((self.stream_folder / "stream.json").read_text())["generation"]
        return self.stream_folder / "checkpoints" / f"{generation:04d}"

    def ids(self, log: str) -> list[int]:
        """The entries of ``offsets`` or ``commits`` of the checkpoint in use."""
        return sorted(int(path.name) for path in (self.checkpoint / log).iterdir() if path.name.isdigit())

    def rows(self, first: int = 0, last: int | None = None) -> Rows:
        return rows_of(self.output, first, last)

    def run(self) -> None:
        self.slackwater("run", "clicks.py", "--until-caught-up", *CONF)

    def kill_before(self, name: str) -> None:
        """Run, and kill when the JVM is held before a file, below the folder, gets its name."""
        kill_when_held(("run", "clicks.py", "--until-caught-up", *CONF), self.folder, [self.folder / name])

    def kill_at(
        self, reached: Callable[[Workspace], bool], holds: Callable[[Workspace], bool], batch: int | None = None
    ) -> None:
        """Run, kill when ``reached``, and again from nothing until the kill was quick enough for ``holds``.

        ``batch`` is the one that is killed, where ``reached`` is true only after it is planned.
        """
        for _ in range(6):
            self.kill_once(reached, batch)
            if holds(self):
                return
            shutil.rmtree(self.folder / ".slackwater")
            shutil.rmtree(self.output)
        raise AssertionError("the kill was never quick enough to hit the point it was meant for")

    def kill_once(self, reached: Callable[[Workspace], bool], batch: int | None = None) -> None:
        """Run, and kill when ``reached``, which is looked at once ``batch`` is planned."""
        process = self.start("run", "clicks.py", "--until-caught-up", *CONF)
        offsets = self.stream_folder / "checkpoints" / "0001" / "offsets"
        kill_when(process, lambda: reached(self), (offsets / "0").exists, (offsets / str(batch or 0)).exists)

    def rebuild(self, *arguments: str) -> dict[str, Any]:
        """Plan and apply a rebuild as the README says; the plan."""
        self.slackwater("plan", "rebuild", STREAM, "--out", "plan.json", "--force", *arguments)
        self.slackwater("apply", "plan.json", "--yes", *CONF)
        plan: dict[str, Any] = json.loads((self.folder / "plan.json").read_text())
        return plan

    def slackwater(self, *arguments: str, code: int = 0, java: bool = True) -> subprocess.CompletedProcess[str]:
        """A command, with the exit code it must have; without ``java`` it finds none, and cannot start Spark.

        It starts neither a JVM nor a Python of its own: ``start`` does.
        """
        spark = attached(self.folder) if java and arguments[0] in WITH_SPARK else {}
        done = warm_python.run(arguments, self.folder, spark if java else {"JAVA_HOME": str(self.folder)})
        assert done.returncode == code, f"{arguments} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
        return done

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """A command in the background, its output in ``output.log``."""
        with (self.folder / "output.log").open("ab") as output:
            command = [sys.executable, "-m", "slackwater", *arguments]
            return subprocess.Popen(command, cwd=self.folder, stdout=output, stderr=output, stdin=subprocess.DEVNULL)

    def written(self) -> int:
        return max(manifest_ids(self.output), default=-1)


CONF = ("--conf", "spark.sql.shuffle.partitions=2", "--master", "local[2]")
