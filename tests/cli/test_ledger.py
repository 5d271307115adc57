"""``slackwater ledger --operations``: what is recorded of operations, and the commands for each."""

import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from slackwater.core.records import UNDOING, OperationRecord
from slackwater.ledger.lease import RUN, Lease
from slackwater.ledger.workspace import Workspace
from slackwater.operations.plan.plan import Plan
from tests.cli.conftest import Slackwater
from tests.support.homes import RAN_MS, STREAM, HomeSpec, edit_ledger, make_home
from tests.support.rebuilds import Project, make_project

NONE = {"continue": None, "undo": None, "obstacle": None}


@pytest.fixture
def applied(tmp_path: Path) -> tuple[Project, list[Plan]]:
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


def folder_of(project: Project, plan: Plan) -> Path:
    return project.home / "streams" / STREAM / "operations" / plan.id


def delete(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def record(workspace: Workspace, status: str) -> None:
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
        ("applying", {"continue": "slackwater apply 'my plan.json' --yes", "undo": "slackwater undo op-1 --yes"}),
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


@pytest.mark.parametrize("lost", ["plan.json", "journal.jsonl", ""])
def test_an_operation_without_its_folder_is_undone_from_the_ledger(
    slackwater: Slackwater, applied: tuple[Project, list[Plan]], lost: str
) -> None:
    """This one has cut nothing, so that its folder has no backup."""
    project, (_, second) = applied
    delete(folder_of(project, second) / lost)

    found = listed(slackwater)[-1]

    assert ways(found) == NONE | {"undo": f"slackwater undo {second.id} --yes"}
    assert slackwater(*shlex.split(found["undo"])[1:]).code == 0
    assert listed(slackwater)[-1]["status"] == "undone"
    with project.open() as workspace:
        assert workspace.ledger.find_stream(STREAM).current_generation == 2


def test_an_operation_whose_backup_was_deleted_cannot_be_undone(slackwater: Slackwater, tmp_path: Path) -> None:
    project = make_project(tmp_path)
    plan = project.plan("batch:3", goal="replay")
    project.apply(plan)
    delete(folder_of(project, plan))
    before = project.in_use()

    (found,) = listed(slackwater)
    refused = slackwater("undo", plan.id, "--yes", "--format", "json")

    assert refused.error["code"] == "backup-damaged"
    assert ways(found) == NONE | {"obstacle": refused.error["message"]}
    assert project.in_use() == before


def test_after_a_loss_of_the_ledger_an_operation_needs_its_folder(
    slackwater: Slackwater, applied: tuple[Project, list[Plan]]
) -> None:
    """The ledger has no copies of its plan and journal."""
    project, (_, second) = applied
    edit_ledger(project.home, "DELETE FROM operation_files")
    delete(folder_of(project, second) / "plan.json")

    assert listed(slackwater)[-1]["obstacle"] == f"The folder of operation {second.id} has no plan"


def test_the_page_has_what_the_document_has(slackwater: Slackwater, applied: tuple[Project, list[Plan]]) -> None:
    _, (first, second) = applied

    page = slackwater("ledger", "--operations").out

    of_first, of_second = page.split(f"  {second.id}  rebuild of ")
    assert f"undo slackwater undo {second.id} --yes" in " ".join(of_second.split())
    assert f"{first.id} rebuild of" in " ".join(of_first.split())
    assert "no undo Generation 2" in " ".join(of_first.split())


def test_a_home_without_operations(slackwater: Slackwater, tmp_path: Path) -> None:
    make_project(tmp_path)

    assert listed(slackwater) == []
    assert slackwater("ledger", "--operations").out.startswith("no operation is recorded: ")


def test_batches_and_operations_are_not_shown_together(slackwater: Slackwater) -> None:
    assert slackwater("ledger", "per_page", "--operations", "--batches", "1..2").code == 2


# ``slackwater ledger``: what is recorded.


def test_all_streams_as_text(slackwater: Slackwater, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    make_home(tmp_path, HomeSpec(run="failed"))

    assert slackwater("ledger").out == snapshot


def test_one_stream_as_json(slackwater: Slackwater, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    make_home(tmp_path)

    assert slackwater("ledger", "per_page", "--batches", "4..5", "--format", "json").document == snapshot


def test_a_batch_without_progress_shows_its_recorded_range(slackwater: Slackwater, tmp_path: Path) -> None:
    make_home(tmp_path, HomeSpec(planned=6))

    batches = slackwater("ledger", "per_page", "--batches", "6", "--format", "json").document["streams"][0]["batches"]

    assert [batch["batch"] for batch in batches] == [6]
    assert batches[0]["progress"] is None
    assert batches[0]["sources"] == [{"source": "0", "start": '{"logOffset":5}', "end": '{"logOffset":6}'}]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [("3..4", [3, 4]), ("4..", [4, 5]), ("..1", [0, 1]), ("2", [2]), ("..", [0, 1, 2, 3, 4, 5]), ("9..", [])],
)
def test_ranges(slackwater: Slackwater, tmp_path: Path, wanted: str, expected: list[int]) -> None:
    make_home(tmp_path)

    document = slackwater("ledger", "per_page", "--batches", wanted, "--format", "json").document

    assert [batch["batch"] for batch in document["streams"][0]["batches"]] == expected
    assert document["streams"][0]["batches_recorded"] == 6


def test_batches_of_all_streams_are_not_shown(slackwater: Slackwater) -> None:
    assert slackwater("ledger", "--batches", "1..2").code == 2


def test_a_home_without_a_ledger(slackwater: Slackwater) -> None:
    done = slackwater("ledger", "--format", "json")

    assert (done.code, done.error["code"]) == (4, "ledger-missing")
