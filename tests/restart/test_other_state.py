"""State other than one windowed aggregation on HDFS-backed stores: rebuilt exactly on RocksDB."""

import json
import shutil
from pathlib import Path

import pytest

from tests.restart.scenario import CONF, SCHEMA, FileClicks, Workspace
from tests.support.killing import kill_when
from tests.support.outputs import manifest_ids, rows_of

pytestmark = [pytest.mark.spark, pytest.mark.thorough, pytest.mark.timeout(1200)]
PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
ROCKSDB = (*CONF, "--conf", f"spark.sql.streaming.stateStore.providerClass={PROVIDER}")
FILES = 8
STREAMS = ("windows", "sessions", "unique", "joined")
PIPELINE = f'''
import slackwater as sw
from pyspark.sql import functions as F

pipeline = sw.Pipeline("web")


def clicks(spark):
    return spark.readStream.schema("{SCHEMA}").option("maxFilesPerTrigger", 1).json("landing")


@pipeline.stream(sink=sw.sinks.files("parquet", "out/windows"))
def windows(spark):
    marked = clicks(spark).withWatermark("ts", "10 minutes")
    return marked.groupBy(F.window("ts", "30 minutes", "15 minutes"), "page").agg(F.sum("n").alias("n"))


@pipeline.stream(sink=sw.sinks.files("parquet", "out/sessions"))
def sessions(spark):
    sessions = clicks(spark).withWatermark("ts", "10 minutes").groupBy(F.session_window("ts", "5 minutes"), "page")
    return sessions.agg(F.sum("n").alias("n"))


@pipeline.stream(sink=sw.sinks.files("parquet", "out/unique"))
def unique(spark):
    return clicks(spark).withWatermark("ts", "10 minutes").dropDuplicates(["ts", "page"]).select("ts", "page")


@pipeline.stream(sink=sw.sinks.files("parquet", "out/joined"))
def joined(spark):
    other = clicks(spark).select(F.col("ts").alias("at"), F.col("page").alias("where"), F.col("n").alias("m"))
    return clicks(spark).join(other, F.expr("ts = at AND page = where AND n > m"))
'''


def workspace_of(folder: Path, pipeline: str) -> Workspace:
    """A workspace with its pipeline and its files, each of them a batch."""
    workspace = Workspace(folder, FileClicks())
    (folder / "clicks.py").write_text(pipeline)
    for file in sorted((folder / "landing").iterdir())[FILES:]:
        file.unlink()
    return workspace


def _checkpoints(workspace: Workspace) -> dict[str, Path]:
    streams = workspace.folder / ".slackwater" / "streams" / "web"
    return {name: streams / name / "checkpoints" / "0001" for name in STREAMS}


def test_every_kind_of_state_that_can_be_recomputed(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    (tmp_path / "killed").mkdir()
    whole, killed = workspace_of(tmp_path / "whole", PIPELINE), workspace_of(tmp_path / "killed", PIPELINE)
    whole.slackwater("run", "clicks.py", "--until-caught-up", *ROCKSDB)

    checkpoints = _checkpoints(killed)
    process = killed.start("run", "clicks.py", "--until-caught-up", *ROCKSDB)
    kill_when(
        process,
        lambda: all((folder / "commits" / "4").exists() for folder in checkpoints.values()),
        lambda: all((folder / "offsets" / "0").exists() for folder in checkpoints.values()),
    )
    contributing = {}
    for name, checkpoint in checkpoints.items():
        written = manifest_ids(killed.output / name)[-1]
        shutil.rmtree(checkpoint)
        killed.slackwater("plan", "rebuild", name, "--out", "plan.json", "--force")
        plan = json.loads((killed.folder / "plan.json").read_text())
        killed.slackwater("apply", "plan.json", "--yes", *ROCKSDB)
        assert written - 1 <= plan["facts"]["target"] <= written, "at most the batch in flight is unknown"
        contributing[name] = plan["facts"]["contributing"]
    killed.slackwater("run", "clicks.py", "--until-caught-up", *ROCKSDB)

    assert contributing["windows"] > 0
    assert {contributing[name] for name in ("sessions", "unique", "joined")} == {0}
    for name in STREAMS:
        assert rows_of(killed.output / name) == rows_of(whole.output / name), name
