"""Killed at each point of a batch, rebuilt at the last written one, finished: the output is the uninterrupted run's."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.restart.scenario import Workspace

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


def test_a_batch_that_was_completed_is_killed_again_and_rebuilt(
    file_workspace: Workspace, file_baseline: Workspace
) -> None:
    """Killed after the sink write, run again, killed again: the second run has reported the rows of the batch."""
    file_workspace.kill_at(*POINTS["after the sink write, before the commit"])
    file_workspace.kill_once(_has(f"{CHECKPOINT}/commits/{KILLED + 2}"))

    plan = file_workspace.rebuild()
    file_workspace.run()

    assert 0 < plan["facts"]["contributing"] < plan["facts"]["target"]
    assert file_workspace.rows() == file_baseline.rows()
