"""Operations on a query that a program writes to Delta by Spark's own writer, without Spark: marks, kills, undo."""

from pathlib import Path

import pytest

from slackwater.checkpoint.logs import read_logs
from slackwater.core.checkpoint import SourceFile
from slackwater.core.errors import OutcomeUnknown
from slackwater.formats.compactible import render_source_file
from slackwater.ledger.recording.stream_files import write_stream_file_of
from slackwater.operations.plan.plan import Plan, SourceStart
from slackwater.storage.local import LocalStore
from tests.operations.apply.native_tables import DELTA, NEWEST, STAGED, TableProject, make_table_project
from tests.support.adopted import ADOPTED
from tests.support.rebuilds import BEGINNING, StopBefore, old_files

COUNT = 3


@pytest.fixture
def project(tmp_path: Path) -> TableProject:
    return make_table_project(tmp_path / "project", DELTA)


def backfill(project: TableProject) -> Plan:
    """Of three files that no batch has read, as the query was started again behind them."""
    old = old_files(project, COUNT)
    files = [
        SourceFile(f"file://{file}", old[-1].timestamp_ms + 1, 0) for file in (project.folder / "clicks").glob("0*")
    ]
    lines = [render_source_file(file) for file in (*old, *files)]
    start = SourceStart("0", '{"logOffset":0}', {"0": "\n".join(["v1", *lines])}, None, "source 0")
    project.apply_plan(project.plan_reset("keep", start))
    return project.plan_backfill(old)


def test_a_backfill_is_taken_out_of_the_table(project: TableProject) -> None:
    plan = backfill(project)
    before, rows, batch = project.in_use(), project.rows, NEWEST + 1
    assert not any("cannot remove" in risk for risk in plan.risks)
    for _ in range(2):
        project.apply_plan(plan)
        assert (project.rows.keys() - rows.keys(), project.mark) == ({f"older-{batch}-0 a.parquet"}, batch)
        project.undo(plan, stopped=True)
        assert (project.in_use(), project.rows, project.mark) == (before, rows, batch - 1)


def test_a_backfill_that_has_written_nothing_is_given_up(project: TableProject) -> None:
    plan = backfill(project)
    before, rows = project.in_use(), project.rows
    with pytest.raises(OutcomeUnknown):
        project.apply_plan(plan, fails=True)
    project.undo(plan, stopped=True)
    assert (project.in_use(), project.rows, project.mark) == (before, rows, NEWEST)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("stage-output", marks=pytest.mark.thorough),
        pytest.param("run-staged", marks=pytest.mark.thorough),
        "swap-output",
        "switch-generation",
    ],
)
@pytest.mark.parametrize("then", ["continue", "undo"])
def test_a_swap_that_is_killed_is_continued_or_undone(project: TableProject, kind: str, then: str) -> None:
    with project.open() as workspace:
        write_stream_file_of(workspace.home, workspace.ledger, ADOPTED)
    before, rows = project.in_use(), project.rows
    plan = project.plan_reset("swap", BEGINNING, str(project.program().pipeline))
    with pytest.raises(KeyboardInterrupt):
        project.apply_plan(plan, StopBefore(kind))
    if then == "continue":
        project.apply_plan(plan)
        assert [name.partition("-")[0] for name in project.rows] == ["again"] * (STAGED + 1)
        assert (project.mark, read_logs(LocalStore(project.path)).committed) == (STAGED, STAGED)
    project.undo(plan, stopped=True)
    assert (project.in_use(), project.rows, project.mark) == (before, rows, NEWEST)
