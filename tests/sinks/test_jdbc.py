"""The jdbc sink on SQLite, where rows pass through the driver: each batch once, or nothing of it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import slackwater as sw
from slackwater.core.errors import PipelineError
from slackwater.core.sink import Owner, WriteContext
from slackwater.sinks.common.batch_function import BatchFailed
from slackwater.sinks.common.registry import open_output

CONTEXT = WriteContext("5f0e", "clicks/orders", 3, "append")


def _as_dict(value: dict[str, Any], *, recursive: bool) -> dict[str, Any]:
    assert recursive
    return value


def rows_of(*numbers: int) -> Any:
    """As much of a DataFrame as the sink reads where rows pass through the driver."""
    values = [{"id": number, "name": f"row {number}"} for number in numbers]
    rows = [SimpleNamespace(asDict=partial(_as_dict, value)) for value in values]
    return SimpleNamespace(columns=["id", "name"], toLocalIterator=lambda: iter(rows), write=NoOutput())


class NoOutput:
    """A batch's writer: counts the batches that were run without output."""

    runs = 0

    def format(self, name: str) -> NoOutput:
        assert name == "noop"
        return self

    def mode(self, _name: str) -> NoOutput:
        return self

    def save(self) -> None:
        NoOutput.runs += 1


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "out.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE out (id INTEGER PRIMARY KEY, name TEXT)")
    return path


def start(sink: sw.sinks.JdbcSink, context: WriteContext = CONTEXT) -> Any:
    open_output(sink.identity()).claim(Owner(context.stream_id, context.stream, "/srv/home"))
    sink.check(rows_of(), context)
    writer: Any = SimpleNamespace(foreachBatch=lambda function: function)
    return sink.attach(writer, context)


def ids(file: Path) -> list[int]:
    with closing(sqlite3.connect(file)) as connection:
        return [row[0] for row in connection.execute("SELECT id FROM out ORDER BY id")]


def test_each_batch_once(file: Path) -> None:
    sink = sw.sinks.jdbc(f"sqlite:///{file}", "out")
    write = start(sink)
    before = NoOutput.runs
    for batch in (0, 0, 1, 0):
        write(rows_of(*range(batch * 2000, (batch + 1) * 2000)), batch)
    assert ids(file) == list(range(4000))
    assert NoOutput.runs - before == 2, "a batch that is there is run all the same, for Spark's watermark"
    with pytest.raises(BatchFailed, match=r"\[sink-"):
        write(rows_of(5000, 5001, 3), 2)
    assert ids(file) == list(range(4000))
    assert open_output(sink.identity()).last_written() == 1
    write(rows_of(5000), 2)
    assert open_output(sink.identity()).last_written() == 2


def test_complete_mode_replaces_and_a_replaced_run_is_refused(file: Path) -> None:
    sink = sw.sinks.jdbc(f"sqlite:///{file}", "out")
    old = start(sink)
    old(rows_of(1, 2), 0)
    write = start(sink, WriteContext("5f0e", "clicks/orders", 4, "complete"))
    write(rows_of(7), 1)
    assert ids(file) == [7]
    with pytest.raises(BatchFailed, match=r"\[sink-fenced\]"):
        old(rows_of(8), 2)
    assert ids(file) == [7]


def test_a_table_or_an_option_that_cannot_be_used(file: Path) -> None:
    for table, columns, code in (("none", "", "sink-table-missing"), ("narrow", "id INTEGER", "sink-columns")):
        with closing(sqlite3.connect(file)) as connection:
            if columns:
                connection.execute(f"CREATE TABLE {table} ({columns})")
        with pytest.raises(PipelineError) as refused:
            start(sw.sinks.jdbc(f"sqlite:///{file}", table))
        assert refused.value.code == code
    for options in ({"driver": "x"}, {"jdbc_url": "jdbc:x:", "isolationLevel": "NONE"}):
        with pytest.raises(PipelineError) as bad:
            sw.sinks.jdbc(f"sqlite:///{file}", "out", **options)
        assert bad.value.code == "sink-option"
