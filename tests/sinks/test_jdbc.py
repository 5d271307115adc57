"""The jdbc sink on SQLite, where rows pass through the driver: each batch once, or nothing of it."""

from __future__ import annotations

import datetime as dt
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from pyspark.sql.types import ArrayType, StructField, StructType, TimestampNTZType, TimestampType

import slackwater as sw
from slackwater.core.errors import PipelineError
from slackwater.core.sink import Owner, WriteContext
from slackwater.sinks.common.batch_function import BatchFailed
from slackwater.sinks.common.registry import open_output
from tests.support.errors import raises_code
from tests.support.postgres_server import PostgresServer

CONTEXT = WriteContext("5f0e", "clicks/orders", 3, "append")


def _as_dict(value: dict[str, Any], *, recursive: bool) -> dict[str, Any]:
    assert recursive
    return value


def rows_of(*numbers: int) -> Any:
    """As much of a DataFrame as the sink reads where rows pass through the driver."""
    values = [{"id": number, "name": f"row {number}"} for number in numbers]
    return frame_of(StructType().add("id", "long").add("name", "string"), values)


def frame_of(schema: StructType, values: list[dict[str, Any]]) -> Any:
    rows = [SimpleNamespace(asDict=partial(_as_dict, value)) for value in values]
    return SimpleNamespace(columns=schema.names, schema=schema, toLocalIterator=lambda: iter(rows), write=NoOutput())


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


def start(sink: sw.sinks.JdbcSink, context: WriteContext = CONTEXT, frame: Any = None) -> Any:
    open_output(sink.identity()).claim(Owner(context.stream_id, context.stream, "/srv/home"))
    sink.check(frame or rows_of(), context)
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


TIMES = StructType([
    StructField("at", TimestampType()), StructField("wall", TimestampNTZType()),
    StructField("several", ArrayType(TimestampType())),
])  # fmt: skip
ENDS = {
    "Europe/Berlin": "9999-12-31 22:59:59+00",
    "America/New_York": "10000-01-01 04:59:59+00",
    "UTC": "9999-12-31 23:59:59+00",
}
"""The last second of 9999 of each zone, in UTC."""
ZONES = pytest.mark.parametrize("zone", ENDS)


@pytest.fixture
def local(zone: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[dt.datetime], dt.datetime]]:
    """A timestamp as PySpark gives it to a driver in that zone: without the zone."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    yield lambda at: TimestampType().fromInternal(int(at.timestamp()) * 1_000_000)
    monkeypatch.undo()
    time.tzset()


@ZONES
def test_timestamps_are_stored_in_utc(file: Path, local: Callable[[dt.datetime], dt.datetime]) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("DROP TABLE out")
        connection.execute("CREATE TABLE out (at TIMESTAMP, wall TIMESTAMP)")
    # The second hour of this name on the day on which summer time ends in Berlin.
    at = dt.datetime(2025, 10, 26, 1, 30, tzinfo=dt.UTC)
    wall = dt.datetime.fromisoformat("2025-10-26 02:30")
    rows = frame_of(StructType(TIMES.fields[:2]), [{"at": local(at), "wall": wall}, {"at": None, "wall": None}])
    start(sw.sinks.jdbc(f"sqlite:///{file}", "out"), frame=rows)(rows, 0)
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT * FROM out").fetchall() == [
            ("2025-10-26 01:30:00.000000", "2025-10-26 02:30:00.000000"),
            (None, None),
        ]


@ZONES
def test_timestamps_do_not_depend_on_the_zone_of_the_driver(
    postgres: PostgresServer, local: Callable[[dt.datetime], dt.datetime], zone: str
) -> None:
    url = postgres.url(postgres.new_database())
    at, wall = dt.datetime(2024, 3, 31, 1, 30, tzinfo=dt.UTC), dt.datetime.fromisoformat("2024-03-31 02:30")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE out (at timestamptz, wall timestamp, several timestamptz[])")
        values = [{"at": local(at), "wall": wall, "several": [local(at), None]}]
        values.append({"at": dt.datetime.fromisoformat("9999-12-31 23:59:59"), "wall": None, "several": None})
        rows = frame_of(TIMES, values)
        start(sw.sinks.jdbc(url.replace("postgresql:", "postgresql+psycopg:"), "out"), frame=rows)(rows, 0)
        connection.execute("SET TimeZone = 'UTC'")
        found = connection.execute("SELECT at, wall, several FROM out WHERE wall IS NOT NULL").fetchall()
        assert found == [(at, wall, [at, None])]
        last = connection.execute("SELECT at::text FROM out WHERE wall IS NULL").fetchall()
        assert last == [(ENDS[zone],)]


def test_a_table_or_an_option_that_cannot_be_used(file: Path) -> None:
    for table, columns, code in (("none", "", "sink-table-missing"), ("narrow", "id INTEGER", "sink-columns")):
        with closing(sqlite3.connect(file)) as connection:
            if columns:
                connection.execute(f"CREATE TABLE {table} ({columns})")
        with raises_code(PipelineError, code):
            start(sw.sinks.jdbc(f"sqlite:///{file}", table))
    for options in ({"driver": "x"}, {"jdbc_url": "jdbc:x:", "isolationLevel": "NONE"}):
        with raises_code(PipelineError, "sink-option"):
            sw.sinks.jdbc(f"sqlite:///{file}", "out", **options)
    for number in ("0", "-1", "many", ""):
        with raises_code(PipelineError, "sink-option-value"):
            sw.sinks.jdbc(f"sqlite:///{file}", "out", jdbc_url="jdbc:x:", numPartitions=number)
    limited = sw.sinks.jdbc(f"sqlite:///{file}", "out", jdbc_url="jdbc:x:", NumPartitions="4", batchsize="9")
    assert (limited.partitions_max, limited.options) == (4, {"batchsize": "9"})
