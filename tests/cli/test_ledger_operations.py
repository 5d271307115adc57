"""``slackwater ledger --operations``: what is recorded of operations, and the commands for each."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from slackwater.app.workspace import Workspace
from slackwater.lease.lease import RUN, Lease
from slackwater.model.plan import Plan
from slackwater.model.records import UNDOING, OperationRecord
from tests.cli.conftest import Slackwater
from tests.support.homes import RAN_MS, STREAM
from tests.support.rebuilds import Project, make_project

NONE = {"continue": None, "undo": None, "obstacle": None}


@pytest.fixture
def applied(tmp_path: Path) -> tuple[Project, list[Plan]]:
    """Two rebuilds that were applied one after the other."""
    project = make_project(tmp_path)
    plans = []
    for target in ("batch:3", "last-written"):
        plans.append(project.plan(target))
        project.apply(plans[-1])
    return project, plans


def listed(slackwater: Slackwater, *stream: str) -> list[dict[str, Any]]:
    found = slackwater("ledger", "--operations", *stream, "--format", "json").document["operations"]
    assert isinstance(found, list)
    return found


def ways(operation: Mapping[str, Any]) -> dict[str, Any]:
    return {name: operation[name] for name in NONE}


def record(workspace: Workspace, status: str) -> None:
    """An operation whose process was killed."""
    workspace.ledger.begin_operation(OperationRecord("op-1", STREAM, "rebuild", status, RAN_MS, summary="my plan.json"))


def test_only_the_newest_operation_can_be_undone(slackwater: Slackwater, applied: tuple[Project, list[Plan]]) -> None:
    _, (first, second) = applied

    older, newer = listed(slackwater, "per_page")

    assert (older["id"], older["stream"], older["goal"], older["status"]) == (first.id, STREAM, "rebuild", "applied")
    assert ways(older) == NONE | {"obstacle": "Generation 2, which the operation switched to, is no longer in use"}
    assert ways(newer) == NONE | {"undo": f"slackwater undo {second.id} --yes"}
    assert listed(slackwater) == [older, newer]


def test_the_command_undoes_it(slackwater: Slackwater, applied: tuple[Project, list[Plan]]) -> None:
    _, (first, _) = applied
    command = listed(slackwater)[-1]["undo"]

    assert slackwater(*shlex.split(command)[1:]).code == 0

    older, newer = listed(slackwater)
    assert ways(older) == NONE | {"undo": f"slackwater undo {first.id} --yes"}
    assert (newer["status"], ways(newer)) == ("undone", NONE)


def test_none_can_be_undone_while_the_stream_runs(slackwater: Slackwater, applied: tuple[Project, list[Plan]]) -> None:
    project, _ = applied
    with project.open() as workspace, Lease.acquire(workspace.ledger, STREAM, project.home, RUN):
        found = listed(slackwater)

    assert [ways(one) for one in found] == [NONE | {"obstacle": "run is in progress"}] * 2


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (
            "applying",
            {"continue": "slackwater apply 'my plan.json' --yes", "undo": "slackwater undo op-1 --yes"},
        ),
        (UNDOING, {"continue": "slackwater undo op-1 --yes"}),
    ],
)
def test_interrupted_operations_can_be_continued(
    slackwater: Slackwater, tmp_path: Path, status: str, expected: dict[str, str]
) -> None:
    with make_project(tmp_path).open() as workspace:
        record(workspace, status)

    (found,) = listed(slackwater)

    assert ways(found) == NONE | expected


def test_an_operation_without_its_folder_cannot_be_undone(
    slackwater: Slackwater, applied: tuple[Project, list[Plan]]
) -> None:
    project, (_, second) = applied
    (project.home / "streams/clicks/per_page/operations" / second.id / "plan.json").unlink()

    assert listed(slackwater)[-1]["obstacle"] == f"The folder of operation {second.id} has no plan"


def test_the_page_has_what_the_document_has(slackwater: Slackwater, applied: tuple[Project, list[Plan]]) -> None:
    _, (first, second) = applied

    page = slackwater("ledger", "--operations").out

    assert f"{second.id} undo slackwater undo {second.id} --yes" in " ".join(page.split())
    assert f"{first.id} no undo Generation 2" in " ".join(page.split())


def test_a_home_without_operations(slackwater: Slackwater, tmp_path: Path) -> None:
    make_project(tmp_path)

    assert listed(slackwater) == []
    assert slackwater("ledger", "--operations").out.startswith("no operation is recorded: ")


def test_batches_and_operations_are_not_shown_together(slackwater: Slackwater) -> None:
    assert slackwater("ledger", "per_page", "--operations", "--batches", "1..2").code == 2
