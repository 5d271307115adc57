"""The batch without data that Spark owes after a kill is planned at the next start: rows equal an unbroken run's."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.restart.scenario import CONF, STREAM
from tests.restart.small import PIPELINE, Saved, SmallWorkspace
from tests.support.outputs import Rows

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]

FIRST = range(120)
"""The watermark is at 109 then: the windows from 0 to 90 are closed, which only the batch without data writes."""
SECOND = [*[70] * 5, *[100] * 3, 200]
"""Rows of a window that is closed, of one that is open, and one that moves the watermark on."""
DELAY = 'sink=sw.sinks.files("parquet", "out")'
WAITING = PIPELINE.replace(DELAY, DELAY + ', trigger=sw.triggers.processing_time("1 hour")')
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
    assert [finding["code"] for finding in status["findings"]] == ["clean", "batch-owed"]
    assert status["marks"]["owed"] == 1

    workspace.caught_up()

    assert workspace.rows() == unbroken[0]
    assert workspace.status()["marks"]["owed"] is None


def test_rows_that_come_after_the_kill_are_as_late_as_ever(
    killed: tuple[SmallWorkspace, Saved], unbroken: tuple[Rows, Rows]
) -> None:
    workspace, saved = killed
    saved.restore()
    workspace.add("second", SECOND)

    workspace.caught_up()

    assert workspace.rows() == unbroken[1]


def test_a_rebuild_leaves_it_to_the_next_run(killed: tuple[SmallWorkspace, Saved], unbroken: tuple[Rows, Rows]) -> None:
    workspace, saved = killed
    saved.restore()
    shutil.rmtree(workspace.checkpoint)

    workspace.rebuild()
    assert workspace.status()["marks"]["owed"] == 1
    workspace.add("second", SECOND)
    workspace.caught_up()

    assert workspace.rows() == unbroken[1]


def test_a_query_that_runs_one_batch_runs_it_first(tmp_path: Path, unbroken: tuple[Rows, Rows]) -> None:
    workspace = SmallWorkspace(tmp_path / "once", ONCE)
    workspace.add("first", FIRST)
    workspace.slackwater("run", "clicks.py", *CONF)
    workspace.add("second", SECOND)
    messages = workspace.slackwater("run", "clicks.py", *CONF).stderr
    assert f"web/{STREAM}: batch 1, without data, is planned first" in messages
    assert workspace.ids("commits") == [0, 1, 2], "the batch that is owed and the one with the data"

    workspace.slackwater("run", "clicks.py", *CONF)

    assert workspace.rows() == unbroken[1]
