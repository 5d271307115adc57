"""Operations on a query that a program writes to Delta by Spark's own writer, without Spark: marks, kills, undo."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from slackwater.checkpoint.layout import commit_path
from slackwater.checkpoint.logs import read_logs
from slackwater.core.checkpoint_logs import SourceFile
from slackwater.core.errors import OutcomeUnknown
from slackwater.core.plan import Plan, SourceStart
from slackwater.formats.compactible import render_source_file
from slackwater.ledger.recording.stream_files import write_stream_file_of
from slackwater.operations.apply.replayer import OperationRun
from slackwater.sinks.common.contract import StagedByPath, of_query
from slackwater.sinks.common.registry import open_output
from slackwater.storage.local import LocalStore
from slackwater.storage.open import open_write_store
from slackwater.storage.protocols import WriteStore
from tests.sinks import delta_logs
from tests.support.adopted import ADOPTED, AdoptedProject, make_adopted
from tests.support.homes import STATELESS, HomeSpec, checkpoint_logs
from tests.support.rebuilds import BEGINNING, StopBefore, StubReplayer, old_files

NEWEST, COUNT, STAGED = 5, 3, 2


@dataclass(frozen=True)
class DeltaProject(AdoptedProject):
    """The project with its output in a Delta table."""

    @property
    def table(self) -> Path:
        return self.folder / "shop" / "counts"

    @property
    def query(self) -> str:
        found = read_logs(LocalStore(self.path)).query_id
        assert found is not None
        return found

    @property
    def rows(self) -> Mapping[str, bytes]:
        return delta_logs.live_files(self.table)

    @property
    def mark(self) -> int | None:
        """The newest batch of the query, as Delta's own writer finds it."""
        return delta_logs.transactions(self.table).get(self.query)


@dataclass
class DeltaWriter(StubReplayer):
    """Writes batches as Delta's own writer does, which skips one whose number the table has for the query."""

    fails: bool = False

    def run_backfill(self, run: OperationRun) -> None:
        if self.fails:
            raise OSError("killed before anything was written")
        store = open_write_store(run.generation.location)
        batch = read_logs(store).planned
        self._write(self.pipeline.parent / "shop" / "counts", store, batch, "older")

    def run_staged(self, run: OperationRun) -> None:
        store = open_write_store(run.generation.location)
        output = of_query(open_output(run.stream.sink), "")
        assert isinstance(output, StagedByPath)
        first = (-1 if run.generation.based_at is None else run.generation.based_at) + 1
        last = first + STAGED
        spec = HomeSpec(planned=last, committed=last, written=last)
        for log, entries in checkpoint_logs(spec, self.pipeline.parent).items():
            for entry, text in entries.items():
                if log != "metadata":
                    store.write(f"{log}/{entry}", text.encode())
        for batch in range(first, last + 1):
            self._write(Path(output.staged_path(run.operation)), store, batch, "again")

    def _write(self, table: Path, store: WriteStore, batch: int, prefix: str) -> None:
        query = str(json.loads(store.read("metadata"))["id"])
        newest = delta_logs.transactions(table).get(query)
        if newest is None or newest < batch:
            delta_logs.write_batch(table, query, batch, prefix=prefix)
        store.write(commit_path(batch), b'v1\n{"nextBatchWatermarkMs":0}')


@pytest.fixture
def project(tmp_path: Path) -> DeltaProject:
    """A query without state, with a table of six batches."""
    plain = make_adopted(tmp_path / "project", HomeSpec(state=None, layout=STATELESS))
    made = DeltaProject(plain.folder, plain.home)
    delta_logs.commit(made.table, delta_logs.TABLE)
    for batch in range(NEWEST + 1):
        delta_logs.write_batch(made.table, made.query, batch)
    sink = {"kind": "table", "name": f"delta.{made.table}", "format": "delta"}
    with closing(sqlite3.connect(made.home / "ledger.db")) as ledger, ledger:
        values = (json.dumps(sink), str(of_program(made).pipeline))
        ledger.execute("UPDATE streams SET sink = ?, pipeline_file = ?", values)
    return made


def of_program(project: DeltaProject, *, fails: bool = False) -> DeltaWriter:
    sink = {"kind": "table", "name": f"delta.{project.table}", "format": "delta"}
    return DeltaWriter(project.folder / "clicks.py", STATELESS, sink=sink, fails=fails)


def apply(project: DeltaProject, plan: Plan, display: StopBefore | None = None, *, fails: bool = False) -> None:
    project.apply(plan, of_program(project, fails=fails), display=display, stopped=True)


def backfill(project: DeltaProject) -> Plan:
    """Of three files that no batch has read, as the query was started again behind them."""
    old = old_files(project, COUNT)
    files = [
        SourceFile(f"file://{file}", old[-1].timestamp_ms + 1, 0) for file in (project.folder / "clicks").glob("0*")
    ]
    lines = [render_source_file(file) for file in (*old, *files)]
    start = SourceStart("0", '{"logOffset":0}', {"0": "\n".join(["v1", *lines])}, None, "source 0")
    apply(project, project.plan_reset("keep", start))
    return project.plan_backfill(old)


def test_a_backfill_is_taken_out_of_the_table(project: DeltaProject) -> None:
    plan = backfill(project)
    before, rows, batch = project.in_use(), project.rows, NEWEST + 1
    assert not any("cannot remove" in risk for risk in plan.risks)
    for _ in range(2):
        apply(project, plan)
        assert (project.rows.keys() - rows.keys(), project.mark) == ({f"older-{batch}-0 a.parquet"}, batch)
        project.undo(plan, stopped=True)
        assert (project.in_use(), project.rows, project.mark) == (before, rows, batch - 1)


def test_a_backfill_that_has_written_nothing_is_given_up(project: DeltaProject) -> None:
    plan = backfill(project)
    before, rows = project.in_use(), project.rows
    with pytest.raises(OutcomeUnknown):
        apply(project, plan, fails=True)
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
def test_a_swap_that_is_killed_is_continued_or_undone(project: DeltaProject, kind: str, then: str) -> None:
    with project.open() as workspace:
        write_stream_file_of(workspace.home, workspace.ledger, ADOPTED)
    before, rows = project.in_use(), project.rows
    plan = project.plan_reset("swap", BEGINNING, str(of_program(project).pipeline))
    with pytest.raises(KeyboardInterrupt):
        apply(project, plan, StopBefore(kind))
    if then == "continue":
        apply(project, plan)
        assert [name.partition("-")[0] for name in project.rows] == ["again"] * (STAGED + 1)
        assert (project.mark, read_logs(LocalStore(project.path)).committed) == (STAGED, STAGED)
    project.undo(plan, stopped=True)
    assert (project.in_use(), project.rows, project.mark) == (before, rows, NEWEST)
