"""Backfills and swaps of queries that a program of the user's starts, without Spark: who writes, and what is undone."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from slackwater.checkpoint.logs import read_logs
from slackwater.cli.verbs.prune import delete_prunable
from slackwater.core.checkpoint import SourceFile
from slackwater.core.errors import Refused
from slackwater.core.records import StreamRecord
from slackwater.formats.compactible import render_source_file
from slackwater.ledger.recording.stream_files import write_stream_file_of
from slackwater.operations.goals.backfill import check_writer
from slackwater.operations.plan.plan import Plan, SourceStart
from slackwater.storage.local import LocalStore
from tests.support.adopted import ADOPTED, AdoptedProject, make_adopted
from tests.support.errors import raises_code
from tests.support.homes import STATELESS, HomeSpec, edit_ledger
from tests.support.outputs import manifest_ids
from tests.support.rebuilds import BEGINNING, StopBefore, StubReplayer, old_files

NEWEST = 5
BATCH = NEWEST + 1
COUNT = 3


@pytest.fixture
def project(tmp_path: Path) -> AdoptedProject:
    """A query that was started again behind three files that no batch has read."""
    made = make_adopted(tmp_path / "project", HomeSpec(state=None, layout=STATELESS))
    edit_ledger(made.home, "UPDATE streams SET pipeline_file = ?", values=(str(made.folder / "clicks.py"),))
    old = old_files(made, COUNT)
    files = [SourceFile(f"file://{file}", old[-1].timestamp_ms + 1, 0) for file in (made.folder / "clicks").glob("0*")]
    lines = [render_source_file(file) for file in (*old, *files)]
    start = SourceStart("0", '{"logOffset":0}', {"0": "\n".join(["v1", *lines])}, None, "source 0")
    made.apply(made.plan_reset("keep", start), of_program(made), stopped=True)
    return made


def of_program(project: AdoptedProject) -> StubReplayer:
    sink = {"kind": "files", "format": "parquet", "path": str(project.folder / "out")}
    return StubReplayer(project.folder / "clicks.py", STATELESS, sink=sink)


def apply(project: AdoptedProject, plan: Plan, display: StopBefore | None = None) -> bool:
    return project.apply(plan, of_program(project), display=display, stopped=True)


def test_the_batch_is_written_and_the_checkpoint_at_the_path_skips_it(project: AdoptedProject) -> None:
    before, position = project.in_use(), _position(project)
    plan = project.plan_backfill(old_files(project, COUNT))
    assert any("must not be started" in risk for risk in plan.risks)

    assert apply(project, plan)

    logs = read_logs(LocalStore(project.path))
    assert (logs.planned, logs.committed) == (BATCH, BATCH)
    assert _position(project) == position
    assert manifest_ids(project.folder / "out") == [*range(BATCH + 1)]
    assert not apply(project, plan)
    project.undo(plan, stopped=True)
    assert project.in_use() == before


@pytest.mark.parametrize("kind", ["run-backfill", "switch-generation"])
@pytest.mark.parametrize("then", ["continue", "undo"])
def test_a_killed_apply_is_continued_or_undone(project: AdoptedProject, kind: str, then: str) -> None:
    before, plan = project.in_use(), project.plan_backfill(old_files(project, COUNT))
    with pytest.raises(KeyboardInterrupt):
        apply(project, plan, StopBefore(kind))
    if then == "continue":
        apply(project, plan)
        assert manifest_ids(project.folder / "out") == [*range(BATCH + 1)]
    project.undo(plan, stopped=True)
    assert project.in_use() == before


def test_aside_nothing_of_the_query_is_changed(project: AdoptedProject) -> None:
    before, side = project.in_use(), project.folder / "side"
    plan = project.plan_backfill(old_files(project, COUNT), side)
    assert not any("change places" in note for note in plan.facts.notes)

    apply(project, plan)

    assert manifest_ids(side) == [0]
    assert project.in_use() == before
    project.undo(plan, stopped=True)
    assert list(side.iterdir()) == []
    assert project.in_use() == before


def test_prune_deletes_both_checkpoints(project: AdoptedProject) -> None:
    plan = project.plan_backfill(old_files(project, COUNT))
    apply(project, plan)
    in_use = project.in_use()
    with project.open() as workspace:
        pruned = delete_prunable(workspace, None, 0, lambda _: None)
    assert [one.generations for one in pruned] == [(1, 2, 3)]
    assert project.beside() == []
    assert {name for name in project.in_use() if "slackwater" not in name} <= in_use.keys()


@pytest.mark.parametrize("then", ["continue", "undo"])
@pytest.mark.parametrize("kind", ["run-staged", "swap-output", "switch-generation"])
def test_a_swap_that_is_killed_is_continued_or_undone(tmp_path: Path, kind: str, then: str) -> None:
    project = make_adopted(tmp_path / "project")
    with project.open() as workspace:
        write_stream_file_of(workspace.home, workspace.ledger, ADOPTED)
    plan = project.plan_reset("swap", BEGINNING, str(project.folder / "clicks.py"))
    assert any("must not be started" in risk for risk in plan.risks)
    before = project.in_use()
    with pytest.raises(KeyboardInterrupt):
        project.apply(plan, display=StopBefore(kind), stopped=True)
    if then == "continue":
        project.apply(plan, stopped=True)
        assert manifest_ids(project.folder / "out") == [0, 1, 2]
        assert read_logs(LocalStore(project.path)).committed == 2
    project.undo(plan, stopped=True)
    (project.folder / "out" / "_slackwater.json").unlink()
    assert {name: text for name, text in project.in_use().items() if "_slackwater" not in name} == before


@pytest.mark.parametrize(
    ("sink", "mode", "code"),
    [
        (None, "append", "backfill-watched"),
        ({"kind": "files", "path": "/elsewhere"}, "append", "backfill-watched"),
        ({"kind": "files", "path": "/out"}, "update", "backfill-replaces"),
    ],
)
def test_another_writer_or_mode_is_refused(sink: Mapping[str, str] | None, mode: str, code: str) -> None:
    class Query(StubReplayer):
        output_mode = mode

    stream = StreamRecord("watched", "clicks", {"kind": "files", "path": "/out"}, "append", "app.py")
    with raises_code(Refused, code):
        check_writer(stream, Query(Path("app.py"), sink=sink), into_directory=False)
    if mode == "append":
        check_writer(stream, Query(Path("app.py"), sink=sink), into_directory=True)
        check_writer(stream._replace(pipeline="clicks"), Query(Path("app.py"), sink=sink), into_directory=False)


def _position(project: AdoptedProject) -> str:
    store = LocalStore(project.path)
    return store.read(f"offsets/{read_logs(store).planned}").decode().splitlines()[-1]
