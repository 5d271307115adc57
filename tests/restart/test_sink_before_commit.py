"""Killed between the sink write and the commit, then run again: the rows are those of an uninterrupted run.

The file sink has the batch and would skip it unread; the run completes it without output first.
"""

import json
import shutil
from functools import partial
from pathlib import Path

import pytest

from tests.restart.scenario import CONF, PIPELINE, ROWS_A_BATCH, SCHEMA, STREAM, FileClicks, Workspace
from tests.restart.test_files import CHECKPOINT
from tests.support.killing import children_of, kill_when

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]

SOURCE = FileClicks().source()
TUMBLING = '    return marked.groupBy(F.window("ts", "1 hour"), "page").agg(F.sum("n").alias("n"))\n'
SESSIONS = """    gap = F.when(F.col("n") > 6, "12 minutes").otherwise("4 minutes")
    return marked.groupBy(F.session_window("ts", gap), "page").agg(F.sum("n").alias("n"))
"""
JOINED = f"""    other = spark.readStream.schema("{SCHEMA}").option("maxFilesPerTrigger", 1).json("landing")
    other = other.where("n > 6").select(F.col("ts").alias("at"), F.col("page").alias("on"), F.col("n").alias("m"))
    near = F.expr("page = on AND at BETWEEN ts AND ts + INTERVAL 5 MINUTES")
    return marked.join(other.withWatermark("at", "10 minutes"), near, "fullOuter")
"""
QUERIES = {"tumbling window": TUMBLING, "dynamic session window": SESSIONS, "full outer join": JOINED}
THOROUGH = ("tumbling window", "full outer join")
KILLED = {"tumbling window": 13, "dynamic session window": 9, "full outer join": 5}
"""The last batch, one whose entry in the manifest is a compacted one, and another."""
NAMES = [pytest.param(name, marks=pytest.mark.thorough if name in THOROUGH else ()) for name in QUERIES]


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_those_of_an_uninterrupted_run(name: str, tmp_path: Path) -> None:
    unbroken = _workspace(tmp_path / "unbroken", QUERIES[name])
    unbroken.run()
    workspace, killed = _workspace(tmp_path / "killed", QUERIES[name]), KILLED[name]
    _kill_before_commit(workspace, killed)

    status = workspace.slackwater("status", java=False).stdout
    messages = workspace.slackwater("run", "clicks.py", "--until-caught-up", *CONF).stderr

    assert unbroken.rows()
    assert workspace.rows() == unbroken.rows()
    assert "the next run completes it without writing it again" in " ".join(status.split())
    assert f"batch {killed}, which is not committed: it is completed first" in messages


def _workspace(folder: Path, query: str) -> Workspace:
    folder.mkdir()
    workspace = Workspace(folder, FileClicks())
    head = PIPELINE.format(source=SOURCE, aggregates="").partition("    return (")[0]
    pipeline = f'{head}    marked = clicks.withWatermark("ts", "10 minutes")\n{query}'
    (folder / "clicks.py").write_text(pipeline)
    return workspace


def _kill_before_commit(workspace: Workspace, batch: int) -> None:
    workspace.kill_before(f"{CHECKPOINT}/commits/{batch}")
    assert (workspace.written(), workspace.ids("commits")[-1]) == (batch, batch - 1)


@pytest.mark.parametrize("point", ["its state is written", "it is committed"])
@pytest.mark.thorough
def test_killed_again_while_the_batch_is_completed(point: str, tmp_path: Path) -> None:
    unbroken = _workspace(tmp_path / "unbroken", SESSIONS)
    unbroken.run()
    workspace = _workspace(tmp_path / "killed", SESSIONS)
    _kill_before_commit(workspace, 9)
    state, commit = workspace.checkpoint / "state/0/0/10.delta", workspace.checkpoint / "commits/9"
    before = state.stat().st_mtime_ns
    process = workspace.start("run", "clicks.py", "--until-caught-up", *CONF)

    def reached() -> bool:
        return commit.exists() if point == "it is committed" else state.stat().st_mtime_ns != before

    kill_when(process, reached, lambda: b"it is completed first" in (workspace.folder / "output.log").read_bytes())
    assert workspace.written() == 9, "the sink keeps what it has"
    workspace.run()

    assert workspace.rows() == unbroken.rows()


@pytest.mark.thorough
def test_a_query_that_runs_one_batch_runs_the_next_one_then(tmp_path: Path) -> None:
    workspace = _workspace(tmp_path / "killed", SESSIONS)
    _kill_before_commit(workspace, 5)
    file = workspace.folder / "clicks.py"
    file.write_text(file.read_text().replace('"out")', '"out"), trigger=sw.triggers.once()'))

    workspace.slackwater("run", "clicks.py", *CONF)

    assert (workspace.ids("commits")[-1], workspace.written()) == (6, 6)
    document = json.loads(workspace.slackwater("ledger", STREAM, "--format", "json", java=False).stdout)
    progress = next(batch["progress"] for batch in document["streams"][0]["batches"] if batch["batch"] == 5)
    assert (progress["input_rows"], progress["event_time_max"] is None) == (ROWS_A_BATCH, False)


@pytest.mark.thorough
def test_a_query_that_runs_one_batch_a_run(tmp_path: Path) -> None:
    """With the trigger once, the interrupted batch is completed and what came meanwhile is read by one run."""
    unbroken = _workspace(tmp_path / "unbroken", TUMBLING)
    workspace = _workspace(tmp_path / "killed", TUMBLING)
    for one in (unbroken, workspace):
        text = (one.folder / "clicks.py").read_text()
        (one.folder / "clicks.py").write_text(text.replace('"append")', '"append", trigger=sw.triggers.once())'))
        files = sorted((one.folder / "landing").iterdir())
        for number, part in enumerate((files[5:10], files[10:])):
            (one.folder / f"later{number}").mkdir()
            for file in part:
                file.rename(one.folder / f"later{number}" / file.name)
    _run_once(unbroken)
    _run_once(workspace)
    for number in range(2):
        _arrive(unbroken, number)
        _arrive(workspace, number)
        _run_once(unbroken)
        newest = workspace.written()
        if number == 0:
            _kill_before_commit_and_run_once(workspace)
        else:
            _run_once(workspace)
        assert workspace.written() > newest
    # The run that completed the batch wrote what the watermark had closed; the others leave that to the next run.
    for one in (unbroken, workspace):
        _run_once(one)
    assert unbroken.rows()
    assert workspace.rows() == unbroken.rows()


def _arrive(workspace: Workspace, number: int) -> None:
    for file in sorted((workspace.folder / f"later{number}").iterdir()):
        file.rename(workspace.folder / "landing" / file.name)


def _run_once(workspace: Workspace) -> str:
    return workspace.slackwater("run", "clicks.py", *CONF).stderr


def _has_written(workspace: Workspace, batch: int) -> bool:
    return workspace.written() >= batch


def _has_children(pid: int) -> bool:
    return bool(children_of(pid))


def _kill_before_commit_and_run_once(workspace: Workspace) -> None:
    """Kill the run of one batch of data between its sink write and its commit, and run again."""
    saved = workspace.folder.with_name("saved")
    shutil.copytree(workspace.folder, saved)
    for _ in range(6):
        before = workspace.written()
        process = workspace.start("run", "clicks.py", *CONF)
        # A batch without data, which the newest watermark has left, comes first.
        kill_when(process, partial(_has_written, workspace, before + 2), partial(_has_children, process.pid))
        if (workspace.written(), workspace.ids("commits")[-1]) == (before + 2, before + 1):
            messages = _run_once(workspace)
            assert f"batch {before + 2}, which is not committed: it is completed first" in messages
            return
        shutil.rmtree(workspace.folder)
        shutil.copytree(saved, workspace.folder)
    raise AssertionError("the kill was never between the sink write and the commit")
