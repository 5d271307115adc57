"""A table that Spark's own writer fills is cut by a plan, without Spark: marks, kills, what is printed, undo."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slackwater.checkpoint.logs import read_logs
from slackwater.cli.main import main
from slackwater.core.errors import Refused
from slackwater.operations.plan.plan import Plan
from slackwater.storage.local import LocalStore
from tests.operations.apply.native_tables import DELTA, ICEBERG, NEWEST, Format, TableProject, make_table_project
from tests.support.adopted import ADOPTED
from tests.support.errors import raises_code
from tests.support.rebuilds import BEGINNING, StopBefore

AFTER, REFUSED = 2, 5
GOALS: dict[str, tuple[int, Callable[[TableProject, str], Plan]]] = {
    "rebuild": (AFTER, lambda project, code: project.plan_unread("rebuild", f"batch:{AFTER}", code)),
    "replay": (AFTER, lambda project, code: project.plan_unread("replay", f"batch:{AFTER + 1}", code)),
    "reset": (-1, lambda project, code: project.plan_reset("clear", BEGINNING, code)),
}


@pytest.fixture(params=[DELTA, ICEBERG], ids=lambda one: one.name)
def project(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> TableProject:
    made = make_table_project(tmp_path / "project", request.param)
    monkeypatch.chdir(made.folder)
    return made


def plan_of(project: TableProject, goal: str) -> tuple[int, Plan]:
    after, make = GOALS[goal]
    return after, make(project, str(project.program().pipeline))


def names(prefix: str, batches: range) -> set[str]:
    return {f"{prefix}-{batch}-0 a.parquet" for batch in batches}


def shown(capsys: pytest.CaptureFixture[str], verb: str, expected: int = 0) -> dict[str, Any]:
    """What a verb says of the stream."""
    capsys.readouterr()
    assert main([verb, ADOPTED, "--format", "json"]) == expected
    (stream,) = json.loads(capsys.readouterr().out)["streams"]
    assert isinstance(stream, dict)
    return stream


def troubles(capsys: pytest.CaptureFixture[str], verb: str) -> list[str]:
    return [one["code"] for one in shown(capsys, verb)["findings"] if one["severity"] != "info"]


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("is_deleted", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_the_application_writes_again_what_was_cut(
    project: TableProject, goal: str, is_deleted: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = project.rows
    if is_deleted:
        shutil.rmtree(project.path)
    after, plan = plan_of(project, goal)
    assert any("must not be started" in risk for risk in plan.risks)
    project.apply_plan(plan)
    kept = names("part", range(after + 1))
    assert project.rows.keys() == kept
    assert project.mark == after or (project.mark is None and after < 0)
    assert read_logs(LocalStore(project.path)).committed == after
    assert shown(capsys, "status")["marks"]["written"] == after
    assert troubles(capsys, "status") == troubles(capsys, "doctor") == []

    project.continue_to(NEWEST)
    assert project.rows.keys() == kept | names("again", range(after + 1, NEWEST + 1))
    assert project.mark == NEWEST
    assert shown(capsys, "status")["marks"]["written"] == NEWEST
    with pytest.raises(Refused):
        project.undo(plan, stopped=True)
    assert project.rows.keys() - rows.keys() == names("again", range(after + 1, NEWEST + 1))


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("verify-generation", marks=pytest.mark.thorough),
        pytest.param("cut-sink", marks=pytest.mark.thorough),
        "switch-generation",
    ],
)
@pytest.mark.parametrize("goal", ["rebuild", pytest.param("reset", marks=pytest.mark.thorough)])
def test_a_cut_that_is_killed_is_continued_and_undone(
    project: TableProject, goal: str, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before, rows = project.in_use(), project.rows
    for then in ("undo", "continue"):
        after, plan = plan_of(project, goal)
        with pytest.raises(KeyboardInterrupt):
            project.apply_plan(plan, StopBefore(kind))
        found = shown(capsys, "status", REFUSED)["findings"][0]
        assert (found["code"], plan.id in found["next"]) == ("operation-unfinished", True)
        if then == "continue":
            project.apply_plan(plan)
            assert project.rows.keys() == names("part", range(after + 1))
            assert troubles(capsys, "status") == []
        project.undo(plan, stopped=True)
        assert (project.in_use(), project.rows, project.mark) == (before, rows, NEWEST)
        assert shown(capsys, "status")["marks"]["written"] == NEWEST


@pytest.mark.parametrize("table_format", [DELTA, ICEBERG], ids=lambda one: one.name)
def test_rows_of_another_query_stay_or_the_cut_is_refused(tmp_path: Path, table_format: Format) -> None:
    project = make_table_project(tmp_path / "project", table_format)
    other = "99999999-2222-4333-8444-555555555555"
    project.write(project.table, other, 0, "other")
    if table_format is ICEBERG:
        with raises_code(Refused, "sink-uncuttable"):
            plan_of(project, "replay")
        return
    after, plan = plan_of(project, "replay")
    project.apply_plan(plan)
    assert project.rows.keys() == names("part", range(after + 1)) | names("other", range(1))
    project.continue_to(NEWEST)
    assert project.rows.keys() == names("part", range(after + 1)) | names("other", range(1)) | names(
        "again", range(after + 1, NEWEST + 1)
    )
