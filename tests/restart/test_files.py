"""Killed at each point of a batch, rebuilt at the last written one, finished: the output is the uninterrupted run's."""

import pytest

from tests.restart.scenario import FileClicks, Workspace
from tests.restart.small import Saved

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]
KILLED = 9
CHECKPOINT = ".slackwater/streams/web/per_page/checkpoints/0001"
POINTS = {
    "before the offset write": (f"{CHECKPOINT}/offsets/{KILLED}", (8, 8, 8)),
    "between offset and sink write": (f"out/_spark_metadata/{KILLED}.compact", (9, 8, 8)),
    "after the sink write, before the commit": (f"{CHECKPOINT}/commits/{KILLED}", (9, 8, 9)),
    "after the commit": (f"{CHECKPOINT}/offsets/{KILLED + 1}", (9, 9, 9)),
}
"""The file before which the batch is held, and what is planned, committed and written then."""


def kill_at(workspace: Workspace, point: str) -> None:
    name, marks = POINTS[point]
    workspace.kill_before(name)
    assert (workspace.ids("offsets")[-1], workspace.ids("commits")[-1], workspace.written()) == marks


WRITTEN = "after the sink write, before the commit"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workspace, Saved]:
    """A workspace that was killed when the sink had written a batch, and a copy of it."""
    workspace = Workspace(tmp_path_factory.mktemp("written"), FileClicks())
    kill_at(workspace, WRITTEN)
    return workspace, Saved(workspace, tmp_path_factory.mktemp("saved") / "copy")


@pytest.fixture
def restored(written: tuple[Workspace, Saved]) -> Workspace:
    workspace, saved = written
    saved.restore()
    return workspace


@pytest.mark.parametrize(
    "point", [pytest.param(point, marks=() if point == WRITTEN else pytest.mark.thorough) for point in POINTS]
)
def test_killed_and_rebuilt_is_as_if_uninterrupted(
    point: str, file_workspace: Workspace, restored: Workspace, file_baseline: Workspace
) -> None:
    workspace = restored if point == WRITTEN else file_workspace
    if point != WRITTEN:
        kill_at(workspace, point)
    target = workspace.written()

    plan = workspace.rebuild()
    workspace.run()

    assert plan["facts"]["target"] == target
    assert 0 < plan["facts"]["contributing"] < target, "the rebuild must neither begin at 0 nor read nothing"
    assert workspace.rows() == file_baseline.rows()


@pytest.mark.thorough
def test_a_batch_that_was_completed_is_killed_again_and_rebuilt(restored: Workspace, file_baseline: Workspace) -> None:
    """Killed after the sink write, run again, killed again: the second run has reported the rows of the batch."""
    restored.kill_before(f"{CHECKPOINT}/offsets/{KILLED + 3}")

    plan = restored.rebuild()
    restored.run()

    assert 0 < plan["facts"]["contributing"] < plan["facts"]["target"]
    assert restored.rows() == file_baseline.rows()
