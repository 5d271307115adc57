"""The driver is killed when one of two tasks of a batch has ended: after a restart each row is there once."""

from pathlib import Path

import pyarrow.parquet
import pytest

from tests.runtime.project import Project
from tests.sinks import delta_logs
from tests.support.warm_jvm import attached

pytestmark = pytest.mark.spark
PIPELINE = """
import time
from pathlib import Path

import slackwater as sw
from pyspark.sql import functions as F

pipeline = sw.Pipeline("work")


@pipeline.stream(sink={sink})
def rows(spark):
    @F.udf("long")
    def waiting(number, part):
        while part == 1 and Path("{folder}/hold").exists():
            time.sleep(0.05)
        return number

    rows = spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 8).json("in")
    return rows.repartitionByRange(2, "id").select(waiting("id", F.spark_partition_id()).alias("id"))
"""
BATCH = 8


@pytest.mark.parametrize(
    "sink",
    ['sw.sinks.files("json", "out")', pytest.param('sw.sinks.delta("out")', marks=pytest.mark.thorough)],
    ids=["files", "delta"],
)
def test_killed_between_two_tasks_of_a_batch(project: Project, sink: str) -> None:
    project.write(PIPELINE.format(sink=sink, folder=project.folder))
    hold, out = project.folder / "hold", project.folder / "out"
    project.add_files(BATCH)
    project.run("--until-caught-up")
    before = _files(out)
    assert _ids(project, sink) == list(range(BATCH))

    hold.touch()
    project.add_files(BATCH)
    command = project.start("run", "pipeline.py", "--until-caught-up")
    # A task writes its file when it ends: its rows are fewer than a buffer takes.
    command.wait_for(lambda: any(out.joinpath(name).stat().st_size for name in _files(out) - before), "a task's file")
    command.kill()

    assert (project.planned("rows"), project.committed("rows")) == (1, 0)
    assert _ids(project, sink) == list(range(BATCH)), "what one task has written is not part of the output"
    hold.unlink()
    project.add_files(BATCH)
    command = project.start("run", "pipeline.py", "--until-caught-up", environment=attached(project.folder))
    assert command.end() == 0, command.log
    assert _ids(project, sink) == list(range(3 * BATCH))
    assert project.committed("rows") == project.planned("rows") == 2


def _files(out: Path) -> set[str]:
    return {path.name for path in out.glob("part-*")}


def _ids(project: Project, sink: str) -> list[int]:
    """The ids in the output, by the manifest or the log of the table."""
    if "files" in sink:
        return project.ids("out")
    out = project.folder / "out"
    tables = [pyarrow.parquet.ParquetFile(out / name).read() for name in delta_logs.live_files(out)]
    return sorted(row["id"] for table in tables for row in table.to_pylist())
