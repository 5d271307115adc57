"""``apply`` killed at each step of a cut of a Delta table, and continued by the command that ``status`` prints."""

import shlex

import pytest

from tests.restart.delta_tables import APPEND, BATCHES, DeltaWorkspace, closed_sums
from tests.restart.scenario import CONF
from tests.restart.small import Saved
from tests.support.killing import kill_at_call
from tests.support.outputs import Rows

pytestmark = [pytest.mark.spark, pytest.mark.thorough, pytest.mark.timeout(1200)]
TARGET = 2
BEFORE = ("call", "sinks/common/changes.py:write")
STEPS = {
    "before-the-commit": ("call", "delta/sink.py:_delete_batches"),
    "after-the-commit": ("return", "delta/sink.py:_delete_batches"),
}


def apply_killed(workspace: DeltaWorkspace, event: str, function: str) -> None:
    """Apply the plan, and kill that at an event of a function."""
    kill_at_call(event, function, ("apply", "plan.json", "--yes", *CONF), workspace.folder)


@pytest.fixture(scope="module")
def cutting(tmp_path_factory: pytest.TempPathFactory) -> tuple[DeltaWorkspace, Saved, Rows]:
    """A workspace whose apply was killed before the cut began, a copy of it, and the rows of the whole table."""
    workspace = DeltaWorkspace(tmp_path_factory.mktemp("killed") / "project", APPEND)
    workspace.caught_up()
    whole = workspace.rows()
    workspace.slackwater("plan", "rebuild", "per_page", "--at", f"batch:{TARGET}", "--out", "plan.json")
    apply_killed(workspace, *BEFORE)
    return workspace, Saved(workspace, tmp_path_factory.mktemp("saved") / "copy"), whole


@pytest.mark.parametrize("step", ["before-the-commit", "after-the-commit"])
def test_the_printed_command_finishes_the_cut(cutting: tuple[DeltaWorkspace, Saved, Rows], step: str) -> None:
    workspace, saved, whole = cutting
    saved.restore()
    apply_killed(workspace, *STEPS[step])
    was_cut = step == "after-the-commit"
    assert workspace.written() == (TARGET if was_cut else BATCHES)
    assert (workspace.rows() == whole) is not was_cut
    status = workspace.status(code=5)
    assert status["verdict"]["code"] == "operation-unfinished"

    workspace.slackwater(*shlex.split(status["next"])[1:], *CONF)

    assert workspace.written() == TARGET
    assert workspace.rows() < whole
    assert workspace.status()["generation"] == 2
    if was_cut:
        workspace.caught_up()
        assert workspace.window_sums() == closed_sums()
        assert workspace.written() == BATCHES


def test_a_killed_cut_is_taken_back_instead(cutting: tuple[DeltaWorkspace, Saved, Rows]) -> None:
    workspace, saved, whole = cutting
    saved.restore()
    apply_killed(workspace, *STEPS["after-the-commit"])
    operation = next((workspace.stream_folder / "operations").iterdir()).name

    workspace.slackwater("undo", operation, "--yes")

    assert (workspace.rows(), workspace.written()) == (whole, BATCHES)
    assert workspace.status()["generation"] == 1
