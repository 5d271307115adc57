"""Killed at each point of a batch, rebuilt at the last written one, finished: the output is the uninterrupted run's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.restart.scenario import STREAM, FileClicks, Workspace

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]
KILLED = 9
Look = Callable[[Workspace], bool]


def _has(path: str) -> Look:
    return lambda workspace: (workspace.folder / path).exists()


def _stands(planned: int, committed: int, written: int) -> Look:
    def holds(workspace: Workspace) -> bool:
        found = (workspace.ids("offsets")[-1], workspace.ids("commits")[-1], workspace.written())
        return found == (planned, committed, written)

    return holds


CHECKPOINT = ".slackwater/streams/web/per_page/checkpoints/0001"
POINTS = {
    "before the offset write": (_has(f"{CHECKPOINT}/sources/0/{KILLED}.compact"), _stands(8, 8, 8)),
    "between offset and sink write": (_has(f"{CHECKPOINT}/offsets/{KILLED}"), _stands(9, 8, 8)),
    "after the sink write, before the commit": (_has(f"out/_spark_metadata/{KILLED}.compact"), _stands(9, 8, 9)),
    "after the commit": (_has(f"{CHECKPOINT}/commits/{KILLED}"), lambda workspace: workspace.ids("commits")[-1] == 9),
}


AROUND_THE_WRITE = ("between offset and sink write", "after the sink write, before the commit")


@pytest.mark.parametrize(
    "point", [pytest.param(point, marks=() if point in AROUND_THE_WRITE else pytest.mark.thorough) for point in POINTS]
)
def test_killed_and_rebuilt_is_as_if_uninterrupted(
    point: str, file_workspace: Workspace, file_baseline: Workspace
) -> None:
    file_workspace.kill_at(*POINTS[point])
    written = file_workspace.written()

    plan = file_workspace.rebuild()
    file_workspace.run()

    assert plan["facts"]["target"] == written
    assert 0 < plan["facts"]["contributing"] < written, "the rebuild must neither begin at 0 nor read nothing"
    assert file_workspace.rows() == file_baseline.rows()


def test_a_resume_has_the_batch_run_again_that_the_sink_would_skip(
    file_workspace: Workspace, file_baseline: Workspace
) -> None:
    """Started as it is, Spark would count rows that the skipped batch has made late."""
    file_workspace.kill_at(*POINTS["after the sink write, before the commit"])

    file_workspace.slackwater("plan", "resume", STREAM, "--out", "plan.json", java=False)
    file_workspace.slackwater("apply", "plan.json", "--yes", java=False)
    assert file_workspace.written() == KILLED - 1
    file_workspace.run()

    assert file_workspace.rows() == file_baseline.rows()


def test_a_batch_that_the_sink_skipped_is_read_again(tmp_path: Path) -> None:
    """Killed after the sink write, run again, killed again: no event ever reported a row of the skipped batch."""
    interrupted, uninterrupted = _without_late_rows(tmp_path / "a"), _without_late_rows(tmp_path / "b")
    uninterrupted.run()
    interrupted.kill_at(*POINTS["after the sink write, before the commit"])
    interrupted.kill_once(_has(f"{CHECKPOINT}/commits/{KILLED + 2}"))

    plan = interrupted.rebuild()
    interrupted.run()

    assert plan["facts"]["contributing"] <= KILLED < plan["facts"]["target"]
    assert interrupted.rows() == uninterrupted.rows()


def _without_late_rows(folder: Path) -> Workspace:
    # Spark's own watermark falls behind by the batch that was skipped, so that it would drop fewer of late rows.
    folder.mkdir()
    workspace = Workspace(folder, FileClicks())
    pipeline = folder / "clicks.py"
    pipeline.write_text(pipeline.read_text().replace('"10 minutes"', '"1 hour"'))
    return workspace
