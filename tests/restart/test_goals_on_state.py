"""Resume, replay and reset of queries with and without state, on both state stores: rows as of an uninterrupted run."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.restart.scenario import CONF, SCHEMA, Workspace
from tests.restart.test_other_state import FILES, PIPELINE, ROCKSDB, STREAMS, workspace_of
from tests.support.killing import kill_when
from tests.support.outputs import Rows, manifest_ids, rows_of
from tests.support.warm_jvm import attached

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]
PLAIN = """

@pipeline.stream(sink=sw.sinks.files("parquet", "out/plain"))
def plain(spark):
    return clicks(spark).where("n > 1")
"""
ALL = (*STREAMS, "plain")
BATCH_QUERY = f"""
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[2]").getOrCreate()
wanted = spark.read.schema("{SCHEMA}").json(sys.argv[2:]).where("n > 1")
found = spark.read.parquet(sys.argv[1])
assert wanted.count() == found.count() > 0, (wanted.count(), found.count())
assert wanted.exceptAll(found).isEmpty() and found.exceptAll(wanted).isEmpty()
spark.stop()
"""
"""Compares the rows in a directory with those of a batch query over files."""
NO_BATCH_WITHOUT_DATA = ("--conf", "spark.sql.streaming.noDataMicroBatches.enabled=false")
"""A batch without data at the end of each run would close windows and sessions that the next file still extends."""
STORES = {"hdfs": (*CONF, *NO_BATCH_WITHOUT_DATA), "rocksdb": (*ROCKSDB, *NO_BATCH_WITHOUT_DATA)}


class Goals(Workspace):
    """A workspace whose files arrive one after another."""

    def __init__(self, folder: Path, settings: tuple[str, ...], first: int, pipeline: str = PIPELINE + PLAIN) -> None:
        folder.mkdir()
        made = workspace_of(folder, pipeline)
        self.folder, self.output, self.settings = made.folder, made.output, settings
        self._later = folder / "later"
        self._later.mkdir()
        for file in sorted((folder / "landing").iterdir())[first:]:
            file.rename(self._later / file.name)

    def arrive(self) -> None:
        file = min(self._later.iterdir())
        file.rename(self.folder / "landing" / file.name)

    def caught_up(self) -> None:
        self.slackwater("run", "clicks.py", "--until-caught-up", *self.settings)

    def apply(self, goal: str, stream: str, *arguments: str, spark: bool = False) -> None:
        """Plan and apply. Without ``spark`` there is no Java: nothing may need it."""
        self.plan(goal, stream, *arguments)
        if spark:
            self.slackwater("apply", "plan.json", "--confirm", stream, *self.settings)
        else:
            self.slackwater("apply", "plan.json", "--yes", java=False)

    def plan(self, goal: str, stream: str, *arguments: str) -> None:
        settings = self.settings if goal in {"reset", "backfill"} else ()
        self.slackwater("plan", goal, stream, "--out", "plan.json", "--force", *arguments, *settings)

    @property
    def operation(self) -> str:
        return str(json.loads((self.folder / "plan.json").read_text())["id"])

    def checkpoints_of(self, stream: str) -> list[Path]:
        """The checkpoints of a stream, oldest first."""
        folder = self.folder / ".slackwater" / "streams" / "web" / stream / "checkpoints"
        return sorted(path for path in folder.iterdir() if path.name.isdigit())

    def checkpoint_of(self, stream: str) -> Path:
        return self.checkpoints_of(stream)[-1]

    def rows_by_stream(self) -> dict[str, Rows]:
        return {name: rows_of(self.output / name) for name in ALL}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rows]:
    whole = Goals(tmp_path_factory.mktemp("whole") / "whole", STORES["hdfs"], FILES)
    whole.caught_up()
    return whole.rows_by_stream()


@pytest.mark.parametrize("store", ["hdfs", pytest.param("rocksdb", marks=pytest.mark.thorough)])
def test_each_goal_ends_with_the_rows_of_an_uninterrupted_run(
    store: str, tmp_path: Path, expected: dict[str, Rows]
) -> None:
    goals = Goals(tmp_path / "goals", STORES[store], FILES - 4)
    goals.caught_up()

    for name in ALL:
        torn_commit(goals.checkpoint_of(name))
        goals.apply("resume", name)
    goals.arrive()
    goals.caught_up()

    for name in ALL:
        goals.apply("replay", name, "--from", "batch:3")
        assert manifest_ids(goals.output / name) == [0, 1, 2]
    goals.arrive()
    goals.caught_up()

    goals.apply("reset", "windows", "--output", "swap", spark=True)
    goals.apply("reset", "joined", "--output", "clear", spark=True)
    goals.arrive()
    if store == "hdfs":
        # A query without state knows no store.
        _pass_over_and_backfill(goals)
    goals.arrive()
    goals.caught_up()

    assert goals.rows_by_stream() == expected


def _pass_over_and_backfill(goals: Goals) -> None:
    """The stream starts again behind a file, which a backfill that is killed, finished and undone reads at last."""
    output = goals.output / "plain"
    goals.apply("reset", "plain", "--from", "latest", "--output", "keep", spark=True)
    before, rows = manifest_ids(output), rows_of(output)
    batch = before[-1] + 1
    staging = _backfill_aside(goals)
    goals.plan("backfill", "plain")
    process = goals.start("apply", "plan.json", "--yes", *goals.settings)
    kill_when(
        process,
        lambda: batch in manifest_ids(output),
        lambda: any((one / "offsets" / str(batch)).exists() for one in goals.checkpoints_of("plain")),
    )
    goals.slackwater("apply", "plan.json", "--yes", *goals.settings)
    assert rows_of(output) != rows
    assert manifest_ids(output) == [*before, batch]

    saved = goals.folder.with_name("saved")
    shutil.copytree(goals.folder, saved)
    goals.slackwater("undo", goals.operation, "--yes", java=False)
    assert (manifest_ids(output), rows_of(output)) == (before, rows)
    shutil.rmtree(goals.folder)
    saved.rename(goals.folder)
    goals.slackwater("undo", staging, "--yes", java=False)
    assert list((goals.folder / "aside").iterdir()) == []


def _backfill_aside(goals: Goals) -> str:
    """The file that was passed over is read into a directory, by an apply that is killed; the operation's id."""
    output, side, newest = goals.output / "plain", goals.folder / "aside", goals.checkpoint_of("plain")
    live = [_content(folder) for folder in (output, newest)]
    goals.plan("backfill", "plain", "--output", "aside", "--into", "aside")
    process = goals.start("apply", "plan.json", "--yes", *goals.settings)
    kill_when(process, lambda: any(side.glob("part-*")), (side / "_slackwater.json").exists)
    goals.slackwater("apply", "plan.json", "--yes", *goals.settings)

    assert manifest_ids(side) == [0]
    assert [_content(folder) for folder in (output, newest)] == live
    passed_over = max((goals.folder / "landing").iterdir())
    subprocess.run(
        [sys.executable, "-c", BATCH_QUERY, str(side), str(passed_over)],
        check=True,
        env={**os.environ, **attached(goals.folder)},
        timeout=300,
    )
    assert "changed nothing now" in goals.slackwater("apply", "plan.json", "--yes").stdout
    return goals.operation


def _content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def torn_commit(checkpoint: Path) -> None:
    newest = max(checkpoint.joinpath("commits").iterdir(), key=_number)
    newest.write_bytes(newest.read_bytes()[:4])
    newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)


def _number(path: Path) -> int:
    return int(path.name) if path.name.isdigit() else -1
