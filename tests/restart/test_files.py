"""Killed at each point of a batch, rebuilt at the last written one, finished: the output is the uninterrupted run's."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.restart.scenario import FileClicks, Workspace
from tests.restart.small import Saved

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


WRITTEN = "after the sink write, before the commit"
AROUND_THE_WRITE = ("between offset and sink write", WRITTEN)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workspace, Saved]:
    """A workspace that was killed when the sink had written a batch, and a copy of it."""
    workspace = Workspace(tmp_path_factory.mktemp("written"), FileClicks())
    workspace.kill_at(*POINTS[WRITTEN])
    return workspace, Saved(workspace, tmp_path_factory.mktemp("saved") / "copy")


@pytest.fixture
def restored(written: tuple[Workspace, Saved]) -> Workspace:
    """The workspace as the kill left it."""
    workspace, saved = written
    saved.restore()
    return workspace


@pytest.mark.parametrize(
    "point", [pytest.param(point, marks=() if point in AROUND_THE_WRITE else pytest.mark.thorough) for point in POINTS]
)
def test_killed_and_rebuilt_is_as_if_uninterrupted(
    point: str, file_workspace: Workspace, restored: Workspace, file_baseline: Workspace
) -> None:
    workspace = restored if point == WRITTEN else file_workspace
    if point != WRITTEN:
        workspace.kill_at(*POINTS[point])
    target = workspace.written()

    plan = workspace.rebuild()
    workspace.run()

    assert plan["facts"]["target"] == target
    assert 0 < plan["facts"]["contributing"] < target, "the rebuild must neither begin at 0 nor read nothing"
    assert workspace.rows() == file_baseline.rows()


def test_a_batch_that_was_completed_is_killed_again_and_rebuilt(restored: Workspace, file_baseline: Workspace) -> None:
    """Killed after the sink write, run again, killed again: the second run has reported the rows of the batch."""
    restored.kill_once(_has(f"{CHECKPOINT}/commits/{KILLED + 2}"))

    plan = restored.rebuild()
    restored.run()

    assert 0 < plan["facts"]["contributing"] < plan["facts"]["target"]
    assert restored.rows() == file_baseline.rows()
