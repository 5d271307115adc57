"""The jdbc sink on a real PostgreSQL: executors stage by Spark's JDBC writer, and each row is published once."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import slackwater as sw
from slackwater.core.errors import StreamFailed
from slackwater.core.sink import Owner, WriteContext
from slackwater.runtime.session import SessionOptions
from slackwater.runtime.session.session import end_session, start_session
from slackwater.sinks.common.batch_function import BatchFailed
from slackwater.sinks.common.database import address_of
from slackwater.sinks.common.marker import MarkedTarget, Marker
from slackwater.sinks.common.registry import open_output
from slackwater.sinks.jdbc.sink import POSTGRESQL_DRIVER, JdbcSink
from slackwater.sinks.jdbc.writer import JdbcWriter, stage
from tests.runtime.project import Project, copying
from tests.support.errors import raises_code
from tests.support.postgres_server import PostgresServer, postgres_server

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]
CONTEXT = WriteContext("5f0e", "clicks/orders", 3, "append")
PIPELINE = copying('sw.sinks.jdbc("{url}", "out", jdbc_url="{jdbc_url}", user="slackwater")')


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server with a port: Java has no sockets of Unix."""
    with postgres_server(tcp=True) as server:
        yield server


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    # A task that fails is retried twice.
    session = start_session(SessionOptions("jdbc", "local[2, 3]", {}, ("postgresql",)), lambda _: None)
    session.sparkContext.setLogLevel("OFF")
    yield session
    end_session(session)


class Database:
    """An empty database with the sink's address in both notations."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.jdbc_url = "jdbc:" + url.replace("slackwater@", "")

    def start(self, frame: DataFrame, *, staged: bool = True, context: WriteContext = CONTEXT, **more: str) -> Any:
        """Claim and check as a run does; the batch function."""
        options = {"jdbc_url": self.jdbc_url, "user": "slackwater", **more} if staged else {}
        sink = sw.sinks.jdbc(self.url.replace("postgresql:", "postgresql+psycopg:"), "out", **options)
        open_output(sink.identity()).claim(Owner(context.stream_id, context.stream, "/srv/home"))
        sink.check(frame, context)
        writer: Any = SimpleNamespace(foreachBatch=lambda function: function)
        return sink.attach(writer, context)

    def writer(self) -> JdbcWriter:
        """What writes batches, to be called in parts."""
        address = address_of(self.url)
        target = MarkedTarget(address, Marker("out"), f"{address.location} out")
        options = {"user": "slackwater", "driver": POSTGRESQL_DRIVER}
        return JdbcWriter(target, CONTEXT, JdbcSink(address, "out", self.jdbc_url, options))

    def execute(self, statement: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement.encode())

    def rows(self, statement: str = "SELECT * FROM out ORDER BY 1") -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url) as connection:
            return connection.execute(statement.encode()).fetchall()

    def tables(self) -> set[str]:
        return {row[0] for row in self.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")}


@pytest.fixture
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The zone of the driver, which is not that of the server."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def database(server: PostgresServer) -> Database:
    return Database(server.url(server.new_database()))


TYPES = {
    "flag": ("true", "boolean", True),
    "number": ("7", "integer", 7),
    "large": ("-9223372036854775808", "bigint", -9223372036854775808),
    "double": ("CAST(0.1 AS DOUBLE)", "double precision", 0.1),
    "exact": ("CAST('-123.4567' AS DECIMAL(38, 4))", "numeric", Decimal("-123.4567")),
    "words": ("'Zürich 東京 \U0001f600 '' \" % \\\\ ; :x'", "text", "Zürich 東京 \U0001f600 ' \" % \\ ; :x"),
    "data": ("X'00FF10'", "bytea", b"\x00\xff\x10"),
    "day": ("DATE'2024-02-29'", "date", dt.date(2024, 2, 29)),
    "instant": (
        "TIMESTAMP'2024-03-31 01:30:00.123456Z'",
        "timestamptz",
        dt.datetime(2024, 3, 31, 1, 30, 0, 123456, tzinfo=dt.UTC),
    ),
    "numbers": ("array(1, 3)", "integer[]", [1, 3]),
    'Odd "name" %s': ("'q'", "text", "q"),
}
"""Column to an expression of Spark, the type in the table, and what psycopg reads."""


@pytest.mark.usefixtures("in_berlin")
@pytest.mark.parametrize("staged", [True, False], ids=["staged", "through-the-driver"])
def test_each_batch_once_with_its_values(spark: SparkSession, database: Database, *, staged: bool) -> None:
    from pyspark.sql import functions as F  # noqa: PLC0415 - heavy

    values = [F.expr(expression).alias(name) for name, (expression, _, _) in TYPES.items()]
    frame = spark.range(4).repartition(3).select("id", *values)
    columns = ", ".join('"' + name.replace('"', '""') + f'" {kind}' for name, (_, kind, _) in TYPES.items())
    database.execute(f"CREATE TABLE out (id bigint, {columns}, more text DEFAULT 'x')")
    write = database.start(frame, staged=staged)
    for batch in (0, 0, 1, 0):
        write(frame, batch)
    write(frame.where("false"), 2)
    rows = database.rows()
    assert [row[0] for row in rows] == [0, 0, 1, 1, 2, 2, 3, 3]
    expected = {name: value for name, (_, _, value) in TYPES.items()}
    assert all(dict(zip(TYPES, row[1:], strict=False)) == expected for row in rows)
    assert {row[-1] for row in rows} == {"x"}
    assert database.tables() == {"out", "slackwater_marker"}


@pytest.mark.parametrize("number", ["1", "3", "9"])
def test_fewer_connections_than_partitions(spark: SparkSession, database: Database, number: str) -> None:
    frame = spark.range(0, 100, 1, 5)
    database.execute("CREATE TABLE out (id bigint)")
    write = database.start(frame, numPartitions=number)
    write(frame, 0)
    assert [row[0] for row in database.rows()] == list(range(100))


def test_a_task_that_fails_in_its_last_row_is_published_once(
    spark: SparkSession, database: Database, tmp_path: Path
) -> None:
    from pyspark.sql import functions as F  # noqa: PLC0415 - heavy

    mark = tmp_path / "mark"

    def fail_once(number: int) -> int:
        if number == 999 and not mark.exists():
            mark.touch()
            raise ValueError("a task fails in its last row, once")
        return number

    # Spark would take the hints for those of an Arrow UDF.
    fail_once.__annotations__ = {}
    frame = spark.range(0, 1000, 1, 2).select(F.udf(fail_once, "long")("id").alias("id"))
    database.execute("CREATE TABLE out (id bigint)")
    write = database.start(frame)
    write(frame, 0)
    assert mark.exists()
    assert [row[0] for row in database.rows()] == list(range(1000))


def test_a_partition_that_two_attempts_have_committed_is_published_once(
    spark: SparkSession, database: Database
) -> None:
    """Spark's writer commits a partition before its task has ended: one that is lost then is run again."""
    database.execute("CREATE TABLE out (id bigint)")
    frame = spark.range(0, 100, 1, 2)
    database.start(frame)
    writer = database.writer()
    rows = stage(frame, writer.sink, "staged")
    again = (
        "SELECT id, 'again ' || slackwater_partition, slackwater_partition FROM staged WHERE slackwater_partition = 1"
    )
    database.execute(f"INSERT INTO staged {again}")
    assert database.rows("SELECT count(*) FROM staged") == [(150,)]
    writer._publish(0, frame, "staged", rows)
    assert [row[0] for row in database.rows()] == list(range(100))


@pytest.mark.parametrize(
    ("lost", "found"),
    [("DELETE FROM staged WHERE slackwater_partition = 1", "found 50 rows"), ("DROP TABLE staged", "found no table")],
)
def test_staged_rows_that_the_server_has_lost(spark: SparkSession, database: Database, lost: str, found: str) -> None:
    """A server that takes over for another may lack the newest transactions, of which each task has one."""
    database.execute("CREATE TABLE out (id bigint)")
    frame = spark.range(0, 100, 1, 2)
    database.start(frame)
    writer = database.writer()
    rows = stage(frame, writer.sink, "staged")
    assert rows == 100
    database.execute(lost)
    with raises_code(StreamFailed, "sink-staged-lost", match=found):
        writer._publish(0, frame, "staged", rows)
    assert (database.rows(), writer.target.last_written()) == ([], -1)
    writer.write(frame, 0)
    assert [row[0] for row in database.rows()] == list(range(100))


def test_a_batch_that_fails_leaves_nothing_and_a_restart_writes_it(spark: SparkSession, database: Database) -> None:
    frame = spark.createDataFrame([(1, "short"), (2, "much longer")], "id LONG, name STRING").repartition(2)
    database.execute("CREATE TABLE out (id bigint PRIMARY KEY, name varchar(6))")
    write = database.start(frame)
    for broken, code, fixed in (
        ("SELECT 1", "sink-value", "ALTER TABLE out ALTER name TYPE text"),
        ("INSERT INTO out VALUES (2, 'taken')", "sink-constraint", "DELETE FROM out"),
        ("ALTER TABLE out RENAME name TO title", "sink-table-changed", "ALTER TABLE out RENAME title TO name"),
        ("ALTER TABLE out RENAME TO away", "sink-table-changed", "ALTER TABLE away RENAME TO out"),
    ):
        database.execute(broken)
        with pytest.raises(BatchFailed, match=rf"\[{code}"):
            write(frame, 0)
        assert len([name for name in database.tables() if name.startswith("slackwater_stage_")]) == 0, code
        database.execute(fixed)
        assert database.rows() == []
    database.start(frame)(frame, 0)
    assert database.rows() == [(1, "short"), (2, "much longer")]


def test_a_database_that_executors_cannot_reach(spark: SparkSession, database: Database) -> None:
    frame = spark.range(1)
    database.execute("CREATE TABLE out (id bigint)")
    database.jdbc_url = "jdbc:postgresql://127.0.0.1:1/none"
    with pytest.raises(BatchFailed, match=r"\[sink-unreachable\]"):
        database.start(frame)(frame, 0)
    database.jdbc_url = "jdbc:" + database.url.replace("slackwater@", "").rpartition("/")[0] + "/none"
    with pytest.raises(BatchFailed, match=r"\[sink-login\]"):
        database.start(frame)(frame, 0)
    database.jdbc_url = "jdbc:nosuch://127.0.0.1/none"
    with pytest.raises(BatchFailed, match=r"\[sink-driver\].*No suitable driver"):
        database.start(frame)(frame, 0)
    assert database.rows() == []


def test_killed_after_staging_the_next_run_writes_the_batch_once(database: Database, tmp_path: Path) -> None:
    project = Project(tmp_path)
    url = database.url.replace("postgresql:", "postgresql+psycopg:")
    project.write(PIPELINE.format(url=url, jdbc_url=database.jdbc_url))
    database.execute("CREATE TABLE out (id bigint)")
    project.add_files(1)
    command = project.start("run", "pipeline.py")
    try:
        command.wait_for(lambda: project.committed("rows") == 0, "batch 0")
        with psycopg.connect(database.url) as connection:
            connection.execute("SELECT * FROM slackwater_marker FOR UPDATE")
            project.add_files(1)
            command.wait_for(partial(_waits, database), "the transaction that publishes")
            assert [name for name in database.tables() if name.startswith("slackwater_stage_")]
            command.kill()
        project.run("--until-caught-up")
    finally:
        for started in project.commands:
            started.kill()
    assert database.rows() == [(0,), (1,)]
    assert database.tables() == {"out", "slackwater_marker"}


def _waits(database: Database) -> bool:
    return bool(database.rows("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"))
