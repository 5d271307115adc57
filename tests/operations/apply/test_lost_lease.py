"""An apply or an undo whose lease another host has taken over changes nothing more, at whatever step it was paused."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from slackwater.cli.verbs.prune import delete_prunable
from slackwater.core.errors import LeaseHeld
from slackwater.operations.action import Action, Display, Inverse
from slackwater.operations.apply.undo_operation import find_operation, plan_of_operation, undo_operation
from slackwater.operations.plan.plan import Plan
from tests.support.errors import raises_code
from tests.support.homes import edit_ledger
from tests.support.rebuilds import Project, make_project


class _TakenOver(Display):
    """Before a step the ledger gets the lease of another host, which has the operation from then on."""

    def __init__(self, project: Project, plan: Plan, step: int) -> None:
        self._project, self._plan, self._step = project, plan, step
        self.at = -1
        self.seen: Mapping[str, object] = {}

    def action(self, action: Action | Inverse) -> None:
        assert action.kind
        self.at += 1
        if self.at == self._step:
            _take_over(self._project)
            self.seen = _seen(self._project, self._plan)


def _take_over(project: Project) -> None:
    edit_ledger(project.home, "UPDATE leases SET fence = fence + 1, host = 'another-host', pid = 1")


def _seen(project: Project, plan: Plan) -> Mapping[str, object]:
    """Each file of the project with what it has, and what the ledger says of the operation and the stream."""
    files: dict[str, object] = {
        str(path.relative_to(project.folder)): path.read_bytes()
        for path in sorted(project.folder.rglob("*"))
        if path.is_file() and "ledger.db" not in path.name and path.name != "lease.json"
    }
    with closing(sqlite3.connect(project.home / "ledger.db")) as ledger:
        files["journal"] = ledger.execute("SELECT journal FROM operation_files").fetchall()
        files["generations"] = ledger.execute("SELECT * FROM generations ORDER BY number").fetchall()
        files["in use"] = ledger.execute("SELECT current_generation FROM streams").fetchall()
        files["status"] = ledger.execute("SELECT status FROM operations WHERE id = ?", (plan.id,)).fetchall()
    return files


@pytest.mark.parametrize("step", range(6))
def test_an_apply_without_its_lease_changes_nothing_more(step: int, tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.claim_output()
    plan = project.plan("batch:3")
    assert len(plan.actions) == 6
    display = _TakenOver(project, plan, step)

    with raises_code(LeaseHeld, "lease-lost"):
        project.apply(plan, display=display)

    assert display.at == step
    assert _seen(project, plan) == display.seen


@pytest.mark.parametrize("step", range(3))
def test_an_undo_without_its_lease_changes_nothing_more(step: int, tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.claim_output()
    plan = project.plan("batch:3")
    project.apply(plan)
    display = _TakenOver(project, plan, step)

    with project.open() as workspace:
        record = find_operation(workspace, plan.id)
        made = plan_of_operation(workspace, record)
        with pytest.raises(LeaseHeld) as caught:
            undo_operation(workspace, record, made, display)

    assert caught.value.code == "lease-lost"
    assert display.at == step
    assert _seen(project, plan) == display.seen


def test_a_prune_without_its_lease_removes_nothing(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.claim_output()
    plan = project.plan("batch:3")
    project.apply(plan)
    before = _seen(project, plan)

    with project.open() as workspace, raises_code(LeaseHeld, "lease-lost"):
        delete_prunable(workspace, None, 0, lambda _: _take_over(project))

    assert _seen(project, plan) == before
