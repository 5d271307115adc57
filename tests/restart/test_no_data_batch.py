"""The pending no-data batch after a kill is planned at the next start: rows equal an uninterrupted run's."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.restart.scenario import CONF, STREAM
from tests.restart.small import PIPELINE, Saved, SmallWorkspace
from tests.restart.test_files import CHECKPOINT
from tests.support.outputs import Rows

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]

FIRST = range(120)
"""The watermark is at 109 then: the windows from 0 to 90 are closed, which only the batch without data writes."""
SECOND = [*[70] * 5, *[100] * 3, 200]
"""Rows of a window that is closed, of one that is open, and one that moves the watermark on."""
DELAY = 'sink=sw.sinks.files("parquet", "out")'
WAITING = PIPELINE.replace(DELAY, DELAY + ', trigger=sw.triggers.processing_time("1 hour")')
SLOW = (
    PIPELINE.replace('F.sum("n")', 'F.sum(F.udf(slow, "long")("n"))')
    .replace("\n@pipeline", "\ndef slow(n):\n    time.sleep(0.05)\n    return n\n\n@pipeline")
    .replace("import slackwater", "import time\nimport slackwater", 1)
)
ONCE = PIPELINE.replace(DELAY, DELAY + ", trigger=sw.triggers.once()")


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> tuple[Rows, Rows]:
    """The rows of uninterrupted runs: after the first file, and after the second."""
    workspace = SmallWorkspace(tmp_path_factory.mktemp("unbroken"))
    workspace.add("first", FIRST)
    workspace.caught_up()
    after_first = workspace.rows()
    assert after_first, "the batch without data writes the windows that were closed"
    workspace.add("second", SECOND)
    workspace.caught_up()
    return after_first, workspace.rows()


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """The rows of an uninterrupted run that finds the second file when it has read the first."""
    workspace = SmallWorkspace(tmp_path_factory.mktemp("together"))
    workspace.add("first", FIRST)
    workspace.add("second", SECOND)
    workspace.caught_up()
    return workspace.rows()


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> tuple[SmallWorkspace, Saved]:
    """A workspace that was killed between its first batch and the batch without data, which an hour separates."""
    workspace = SmallWorkspace(tmp_path_factory.mktemp("killed"), WAITING)
    workspace.add("first", FIRST)
    workspace.kill_idle()
    assert (workspace.ids("offsets"), workspace.ids("commits")) == ([0], [0])
    assert not workspace.rows()
    return workspace, Saved(workspace, tmp_path_factory.mktemp("saved") / "copy")


def test_a_plain_run_plans_it(killed: tuple[SmallWorkspace, Saved], unbroken: tuple[Rows, Rows]) -> None:
    workspace, saved = killed
    saved.restore()
    status = workspace.status()
    assert [finding["code"] for finding in status["findings"]] == ["clean", "no-data-batch-pending"]
    assert status["marks"]["pending_no_data"] == 1

    workspace.caught_up()

    assert workspace.rows() == unbroken[0]
    assert workspace.status()["marks"]["pending_no_data"] is None


def test_unread_input_that_is_touched_stays_unread(killed: tuple[SmallWorkspace, Saved], together: Rows) -> None:
    workspace, saved = killed
    saved.restore()
    workspace.add("second", SECOND)
    # Change everything about a file but what the source looks at.
    file = workspace.folder / "landing" / "second.json"
    file.chmod(0o600)
    os.chown(file, os.getuid(), os.getgid())
    os.link(file, file.parents[1] / "linked")
    subprocess.run(["cp", "-a", str(file), f"{file.parents[1]}/restored"], check=True)
    (file.parents[1] / "restored").replace(file)

    messages = workspace.caught_up().stderr

    assert workspace.rows() == together
    assert "batch 1 reads data that a source already has: rows that arrived while the stream was stopped" in messages


def test_a_rebuild_leaves_it_to_the_next_run(killed: tuple[SmallWorkspace, Saved], unbroken: tuple[Rows, Rows]) -> None:
    workspace, saved = killed
    saved.restore()
    shutil.rmtree(workspace.checkpoint)

    workspace.rebuild()
    assert workspace.status()["marks"]["pending_no_data"] == 1
    workspace.caught_up()

    assert workspace.rows() == unbroken[0]


def test_a_run_that_ends_by_itself_ends_where_it_would_have(tmp_path: Path, unbroken: tuple[Rows, Rows]) -> None:
    """Killed after its last batch with data: what arrives then is not part of the run."""
    workspace = SmallWorkspace(tmp_path / "ends")
    workspace.add("first", FIRST[:100])
    workspace.add("more", FIRST[100:])
    workspace.kill_before(f"{CHECKPOINT}/offsets/2")
    assert workspace.ids("commits") == workspace.ids("offsets") == [0, 1]
    workspace.add("second", SECOND)

    messages = workspace.caught_up().stderr

    assert "batch 2, without data, is planned first" in messages
    assert workspace.rows() == unbroken[1]


@pytest.mark.thorough
def test_a_stopped_query_had_read_all_there_was(tmp_path: Path, unbroken: tuple[Rows, Rows]) -> None:
    workspace = SmallWorkspace(tmp_path / "stopped", SLOW)
    workspace.add("first", FIRST)
    process = workspace.start("run", "clicks.py", *CONF)
    planned = workspace.stream_folder / "checkpoints" / "0001" / "offsets" / "0"
    while not planned.exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.terminate()
    assert process.wait(120) == 0
    assert (workspace.ids("offsets"), workspace.ids("commits")) == ([0], [0])
    workspace.add("second", SECOND)

    messages = workspace.caught_up().stderr

    assert workspace.rows() == unbroken[1]
    assert "batch 1, without data, is planned first" in messages


def test_a_query_that_runs_one_batch_runs_it_first(tmp_path: Path, unbroken: tuple[Rows, Rows]) -> None:
    workspace = SmallWorkspace(tmp_path / "once", ONCE)
    workspace.add("first", FIRST)
    workspace.slackwater("run", "clicks.py", *CONF)
    workspace.add("second", SECOND)
    messages = workspace.slackwater("run", "clicks.py", *CONF).stderr
    assert f"web/{STREAM}: batch 1, without data, is planned first" in messages
    assert workspace.ids("commits") == [0, 1, 2], "the no-data batch and the one with the data"

    workspace.slackwater("run", "clicks.py", *CONF)

    assert workspace.rows() == unbroken[1]
