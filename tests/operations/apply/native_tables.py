"""A project of an application whose own writer fills a Delta or Iceberg table, and that writer, without Spark."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from slackwater.checkpoint.layout import commit_path
from slackwater.checkpoint.logs import read_logs
from slackwater.core.records import GenerationRecord
from slackwater.operations.apply.operation import Operation
from slackwater.operations.plan.plan import Plan
from slackwater.sinks.common.contract import of_any_query
from slackwater.sinks.common.registry import open_output
from slackwater.storage.local import LocalStore
from slackwater.storage.open import open_write_store
from slackwater.storage.protocols import WriteStore
from tests.sinks import delta_logs, iceberg_tables
from tests.support.adopted import AdoptedProject, make_adopted
from tests.support.homes import STATELESS, HomeSpec, checkpoint_logs
from tests.support.rebuilds import StopBefore, StubReplayer

NEWEST, STAGED = 5, 2


@dataclass(frozen=True)
class Format:
    """How a table is created and written by Spark's own writer, and what readers and this writer see in it."""

    name: str
    create: Callable[[Path], object]
    write: Callable[[Path, str, int, str], object]
    files: Callable[[Path], Mapping[str, bytes]]
    mark: Callable[[Path, str], int | None]


def _write_iceberg(table: Path, query: str, batch: int, prefix: str) -> None:
    name = iceberg_tables.data_file(table, f"{prefix}-{batch}-0 a.parquet", [batch])
    iceberg_tables.commit_epoch(table, query, batch, [name])


def _iceberg_files(table: Path) -> Mapping[str, bytes]:
    return {name.removeprefix("data/"): data for name, data in iceberg_tables.live_files(table).items()}


DELTA = Format(
    "delta",
    lambda table: delta_logs.commit(table, delta_logs.TABLE),
    lambda table, query, batch, prefix: delta_logs.write_batch(table, query, batch, prefix=prefix),
    delta_logs.live_files,
    lambda table, query: delta_logs.transactions(table).get(query),
)
ICEBERG = Format("iceberg", iceberg_tables.create, _write_iceberg, _iceberg_files, iceberg_tables.epoch_of)


@dataclass(frozen=True)
class TableProject(AdoptedProject):
    format: Format

    @property
    def table(self) -> Path:
        return self.folder / "shop" / "counts"

    @property
    def sink(self) -> Mapping[str, str]:
        return {"kind": "table", "name": f"{self.format.name}.{self.table}", "format": self.format.name}

    @property
    def query(self) -> str:
        found = read_logs(LocalStore(self.path)).query_id
        assert found is not None
        return found

    @property
    def rows(self) -> Mapping[str, bytes]:
        return self.format.files(self.table)

    @property
    def mark(self) -> int | None:
        return self.format.mark(self.table, self.query)

    def write(self, table: Path, query: str, batch: int, prefix: str) -> None:
        """Write a batch as Spark's own writer does, which skips one whose number the table has for the query."""
        newest = self.format.mark(table, query)
        if newest is None or newest < batch:
            self.format.write(table, query, batch, prefix)

    def continue_to(self, last: int) -> None:
        store = LocalStore(self.path)
        first = read_logs(store).committed + 1
        for log, entries in checkpoint_logs(HomeSpec(planned=last, committed=last), self.folder).items():
            for entry, text in entries.items():
                if log != "metadata" and entry >= first:
                    store.write(f"{log}/{entry}", text.encode())
        for batch in range(first, last + 1):
            self.write(self.table, self.query, batch, "again")

    def apply_plan(self, plan: Plan, display: StopBefore | None = None, *, fails: bool = False) -> None:
        self.apply(plan, self.program(fails=fails), display=display, stopped=True)

    def program(self, *, fails: bool = False) -> TableWriter:
        return TableWriter(self.folder / "clicks.py", STATELESS, sink=self.sink, project=self, fails=fails)


@dataclass
class TableWriter(StubReplayer):
    project: TableProject | None = None
    fails: bool = False

    def run_backfill(self, _operation: Operation, generation: GenerationRecord) -> None:
        if self.fails:
            raise OSError("killed before anything was written")
        assert self.project is not None
        store = open_write_store(generation.location)
        batch = read_logs(store).planned
        self._write(self.project.table, store, batch, "older")

    def run_staged(self, operation: Operation, generation: GenerationRecord) -> None:
        store = open_write_store(generation.location)
        output = of_any_query(open_output(operation.stream.sink))
        first = (-1 if generation.based_at is None else generation.based_at) + 1
        last = first + STAGED
        spec = HomeSpec(planned=last, committed=last, written=last)
        for log, entries in checkpoint_logs(spec, self.pipeline.parent).items():
            for entry, text in entries.items():
                if log != "metadata":
                    store.write(f"{log}/{entry}", text.encode())
        for batch in range(first, last + 1):
            self._write(Path(output.staged_path(operation.plan.id) or ""), store, batch, "again")

    def _write(self, table: Path, store: WriteStore, batch: int, prefix: str) -> None:
        assert self.project is not None
        self.project.write(table, str(json.loads(store.read("metadata"))["id"]), batch, prefix)
        store.write(commit_path(batch), b'v1\n{"nextBatchWatermarkMs":0}')


def make_table_project(folder: Path, table_format: Format) -> TableProject:
    """A query without state, with a table of the batches up to NEWEST."""
    plain = make_adopted(folder, HomeSpec(state=None, layout=STATELESS))
    made = TableProject(plain.folder, plain.home, table_format)
    table_format.create(made.table)
    for batch in range(NEWEST + 1):
        table_format.write(made.table, made.query, batch, "part")
    with closing(sqlite3.connect(made.home / "ledger.db")) as ledger, ledger:
        values = (json.dumps(made.sink), str(made.program().pipeline))
        ledger.execute("UPDATE streams SET sink = ?, pipeline_file = ?", values)
    return made
