"""The PostgreSQL sink with a real Spark and a real server: types, modes, repeated and failing batches."""

from __future__ import annotations

import datetime as dt
import os
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import slackwater as sw
from slackwater.core.errors import PipelineError, Refused
from slackwater.core.sink import Owner, WriteContext
from slackwater.runtime.session.session import end_session
from slackwater.sinks.common.batch_function import BatchFailed
from slackwater.sinks.common.registry import open_output
from tests.support.errors import raises_code
from tests.support.postgres_server import PostgresServer
from tests.support.small_disk import small_disk

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
CONTEXT = WriteContext("5f0e", "clicks/orders", 3, "append")
TYPES = {
    "flag": ("true", True),
    "tiny": ("CAST(-7 AS TINYINT)", -7),
    "small": ("CAST(-300 AS SMALLINT)", -300),
    "number": ("2147483647", 2147483647),
    "large": ("-9223372036854775808", -9223372036854775808),
    "real": ("CAST(1.5 AS FLOAT)", 1.5),
    "double": ("CAST(0.1 AS DOUBLE)", 0.1),
    "infinite": ("CAST('-Infinity' AS DOUBLE)", float("-inf")),
    "exact": ("CAST('-12345678901234567890.123456789' AS DECIMAL(38, 9))", Decimal("-12345678901234567890.123456789")),
    "whole": ("CAST('12345' AS DECIMAL(10, 0))", Decimal(12345)),
    "words": ("'Zürich 東京 \U0001f600 '' \" % \\\\ ; :x'", "Zürich 東京 \U0001f600 ' \" % \\ ; :x"),
    "empty": ("''", ""),
    "data": ("X'00FF10'", b"\x00\xff\x10"),
    "day": ("DATE'0001-01-01'", dt.date(1, 1, 1)),
    "instant": ("TIMESTAMP'2024-03-31 01:30:00.123456Z'", dt.datetime(2024, 3, 31, 1, 30, 0, 123456, tzinfo=dt.UTC)),
    "local_time": ("TIMESTAMP_NTZ'1582-10-10 02:30:00'", dt.datetime.fromisoformat("1582-10-10T02:30:00")),
    "span": ("INTERVAL '3 04:05:06.000007' DAY TO SECOND", dt.timedelta(3, 6, 7, 0, 5, 4)),
    "months": ("INTERVAL '1-2' YEAR TO MONTH", dt.timedelta(days=425)),
    "nothing": ("NULL", None),
    "numbers": ("array(1, NULL, 3)", [1, None, 3]),
    "tiny_numbers": ("array(CAST(1 AS TINYINT))", [1]),
    "names": ("array('a', NULL, '{\"x\",}')", ["a", None, '{"x",}']),
    "decimals": ("array(CAST('1.50' AS DECIMAL(5, 2)))", [Decimal("1.50")]),
    "instants": ("array(TIMESTAMP'2024-01-01 00:00:00Z')", [dt.datetime(2024, 1, 1, tzinfo=dt.UTC)]),
    "no_numbers": ("CAST(array() AS ARRAY<INT>)", []),
    "nested": ("array(array(1), array(2, 3), NULL)", [[1], [2, 3], None]),
    "record": ("named_struct('a', 1, 'b', CAST(NULL AS STRING), 'c', array(1.5D))", {"a": 1, "b": None, "c": [1.5]}),
    "records": ("array(named_struct('a', 'x'))", [{"a": "x"}]),
    "map": ("map('k', 1, 'l', NULL)", {"k": 1, "l": None}),
    'Odd "name" %s': ("'q'", "q"),
    "a`tick": ("'t'", "t"),
}
"""Column to an expression of Spark and what psycopg reads. A row of nulls is written next to it."""


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession  # noqa: PLC0415 - heavy; only these tests pay for it

    builder = SparkSession.builder.master("local[2, 3]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.session.timeZone", "America/New_York")
    builder = builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
    with pytest.MonkeyPatch.context() as patch:
        # PySpark reads it when the session starts; without it workers use the python3 of PATH.
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        yield session
        # Its JVM as well: the next session of this process may need other jars.
        end_session(session)


class Database:
    """An empty database and the batches that are written to it."""

    def __init__(self, url: str) -> None:
        self.url = url

    def start(self, sink: sw.sinks.PostgresSink, frame: DataFrame, context: WriteContext = CONTEXT) -> Any:
        """Claim and check as a run does; the batch function."""
        open_output(sink.identity()).claim(Owner(context.stream_id, context.stream, "/srv/home"))
        sink.check(frame, context)
        writer: Any = SimpleNamespace(foreachBatch=lambda function: function)
        return sink.attach(writer, context)

    def sink(self, **options: Any) -> sw.sinks.PostgresSink:
        return sw.sinks.postgres(self.url, "out", **options)

    def execute(self, statement: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement.encode())

    def rows(self, statement: str = "SELECT * FROM out ORDER BY 1") -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url) as connection:
            connection.execute("SET TIME ZONE 'UTC'")
            return connection.execute(statement.encode()).fetchall()

    def tables(self) -> set[str]:
        return {row[0] for row in self.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")}


@pytest.fixture
def database(postgres: PostgresServer) -> Database:
    return Database(postgres.url(postgres.new_database()))


def _fails(code: str, act: Callable[[], object]) -> str:
    with pytest.raises(BatchFailed) as failed:
        act()
    assert f"[{code}]" in str(failed.value)
    return str(failed.value)


def test_every_type_comes_back_as_it_was(spark: SparkSession, database: Database) -> None:
    from pyspark.sql import functions as F  # noqa: PLC0415 - heavy

    values = [F.expr(expression).alias(name) for name, (expression, _) in TYPES.items()]
    row = spark.range(1).select(F.lit(1).alias("id"), *values)
    nulls = spark.range(1).select(
        F.lit(2).alias("id"), *(F.lit(None).cast(field.dataType).alias(field.name) for field in row.schema.fields[1:])
    )
    frame = row.union(nulls)
    write = database.start(database.sink(create=True), frame)
    write(frame, 0)
    first, second = database.rows()
    assert dict(zip(TYPES, first[1:], strict=True)) == {name: expected for name, (_, expected) in TYPES.items()}
    assert set(second[1:]) == {None}
    assert database.tables() == {"out", "slackwater_marker"}
    # The same table as one that existed before.
    write = database.start(database.sink(), frame)
    write(frame, 1)
    assert len(database.rows()) == 4


def test_a_batch_is_written_once_in_each_mode(spark: SparkSession, database: Database) -> None:
    frame = spark.createDataFrame([(1, "a"), (2, "b"), (None, "n")], "id INT, name STRING").repartition(3)
    sink = database.sink(create=True, keep_batch_id=True)
    write = database.start(sink, frame)
    for batch in (0, 0, 1, 0):
        write(frame, batch)
    assert [row[0] for row in database.rows("SELECT count(*) FROM out GROUP BY _slackwater_batch")] == [3, 3]
    write(frame.where("false"), 2)
    assert open_output(sink.identity()).last_written() == 2
    with raises_code(PipelineError, "sink-columns"):
        database.start(database.sink(keys="id"), frame)

    database.execute("DROP TABLE out")
    upsert = database.start(database.sink(keys="id", create=True), frame)
    upsert(frame, 3)
    upsert(spark.createDataFrame([(2, "B"), (None, "N"), (3, "c")], "id INT, name STRING"), 4)
    assert database.rows("SELECT id, name FROM out ORDER BY id") == [(1, "a"), (2, "B"), (3, "c"), (None, "N")]
    twice = spark.createDataFrame([(5, "x"), (5, "y")], "id INT, name STRING")
    _fails("sink-keys-repeated", lambda: upsert(twice, 5))
    assert len(database.rows()) == 4
    assert database.tables() == {"out", "slackwater_marker"}

    replace = database.start(database.sink(mode="replace"), frame)
    replace(spark.createDataFrame([(9, "z")], "id INT, name STRING"), 5)
    assert database.rows("SELECT id, name FROM out") == [(9, "z")]
    replace(frame.where("false"), 6)
    assert database.rows("SELECT id, name FROM out") == []


def test_a_task_that_fails_and_a_run_that_was_replaced(spark: SparkSession, database: Database, tmp_path: Path) -> None:
    from pyspark.sql import functions as F  # noqa: PLC0415 - heavy

    marks = str(tmp_path)

    def fail_once(number: int) -> int:
        mark = Path(marks) / str(number)
        if number % 500 == 499 and not mark.exists():
            mark.touch()
            raise ValueError("a task fails in its last rows, once")
        return number

    # Spark would take the hints for those of an Arrow UDF.
    fail_once.__annotations__ = {}
    frame = spark.range(0, 1000, 1, 2).select(F.udf(fail_once, "long")("id").alias("id"))
    write = database.start(database.sink(create=True), frame)
    write(frame, 0)
    assert len(list(tmp_path.iterdir())) == 2
    assert [row[0] for row in database.rows()] == list(range(1000))

    # What a killed driver leaves: a staged table that no transaction publishes or drops.
    prefix = database.sink().table.staged_prefix(CONTEXT.stream_id)
    database.execute(f"CREATE UNLOGGED TABLE {prefix}{'0' * 32} AS SELECT 5 AS c0")
    database.start(database.sink(), frame, WriteContext("5f0e", "clicks/orders", 4, "append"))
    assert database.tables() == {"out", "slackwater_marker"}
    _fails("sink-fenced", lambda: write(frame, 1))
    with raises_code(Refused, "sink-fenced"):
        database.start(database.sink(), frame)
    with raises_code(Refused, "sink-owned"):
        database.start(database.sink(), frame, WriteContext("other", "clicks/other", 9, "append"))
    assert len(database.rows()) == 1000


def test_values_and_tables_that_do_not_fit(spark: SparkSession, database: Database) -> None:
    from pyspark.sql import functions as F  # noqa: PLC0415 - heavy

    frame = spark.createDataFrame([(1, "short"), (2, "much longer")], "id LONG, name STRING")
    with raises_code(PipelineError, "sink-table-missing"):
        database.start(database.sink(), frame)
    database.execute("CREATE TABLE out (id smallint, name varchar(6))")
    write = database.start(database.sink(), frame)
    assert "character varying(6)" in _fails("sink-value", lambda: write(frame, 0))
    assert database.rows() == []
    write(frame.where("id = 1"), 0)
    assert database.rows() == [(1, "short")]
    _fails("sink-value", lambda: write(frame.where("id = 1").withColumn("id", F.lit(70000).cast("long")), 1))

    text = _fails("sink-zero-byte", lambda: write(frame.limit(1).withColumn("name", F.lit("a\0b")), 1))
    assert "column name" in text
    assert database.rows() == [(1, "short")]
    database.execute("ALTER TABLE out ADD CHECK (id < 5)")
    assert "check" in _fails(
        "sink-constraint", lambda: write(frame.limit(1).withColumn("id", F.lit(7).cast("long")), 1)
    )
    database.execute("ALTER TABLE out DROP COLUMN name")
    _fails("sink-table-changed", lambda: write(frame.limit(1), 1))

    for types, code in (
        ("id integer", "sink-columns"),
        ("id bigint, name integer", "sink-column-type"),
        ("id double precision, name text", "sink-column-type"),
        ("id bigint, name text, more text NOT NULL", "sink-columns"),
    ):
        database.execute(f"DROP TABLE out; CREATE TABLE out ({types})")
        with raises_code(PipelineError, code):
            database.start(database.sink(), frame)
    assert database.tables() == {"out", "slackwater_marker"}


def test_a_batch_that_failed_is_written_once_what_is_wrong_is_corrected(
    spark: SparkSession, database: Database
) -> None:
    frame = spark.range(0, 100, 1, 4).selectExpr("id", "'row ' || id AS name")
    database.execute("CREATE TABLE out (id bigint PRIMARY KEY, name text)")
    write = database.start(database.sink(), frame)
    for broken, code, corrected in (
        # A row in the middle: those of other tasks, and those before it, are not visible either.
        ("INSERT INTO out VALUES (57, 'taken')", "sink-constraint", "DELETE FROM out"),
        ("ALTER TABLE out ALTER name TYPE varchar(5)", "sink-value", "ALTER TABLE out ALTER name TYPE text"),
        ("ALTER TABLE out RENAME name TO title", "sink-table-changed", "ALTER TABLE out RENAME title TO name"),
        ("ALTER TABLE out RENAME TO away", "sink-table-changed", "ALTER TABLE away RENAME TO out"),
    ):
        database.execute(broken)
        _fails(code, lambda: write(frame, 0))
        database.execute(corrected)
        assert database.rows() == []
        assert database.tables() == {"out", "slackwater_marker"}
    database.start(database.sink(), frame)(frame, 0)
    assert database.rows() == [(number, f"row {number}") for number in range(100)]


@pytest.mark.parametrize("full", ["staging", "publishing"])
def test_a_full_disk_leaves_nothing_of_the_batch(
    full: str, spark: SparkSession, database: Database, postgres: PostgresServer
) -> None:
    frame = spark.range(0, 20_000, 1, 2).selectExpr("id", "repeat(sha2(id || '', 512), 8) AS name")
    name = database.url.partition("/test_")[2].partition("?")[0]
    with small_disk(4) as disk:
        space = disk.folder / "space"
        space.mkdir(mode=0o700)
        data = postgres._data.stat()
        os.chown(space, data.st_uid, data.st_gid)
        postgres.execute(f"CREATE TABLESPACE small_{name} LOCATION '{space}'")
        database.execute("CREATE TABLE out (id bigint, name text)")
        if full == "staging":
            postgres.execute(f"ALTER DATABASE test_{name} SET default_tablespace = small_{name}")
        else:
            database.execute(f"ALTER TABLE out SET TABLESPACE small_{name}")
        write = database.start(database.sink(), frame)
        text = _fails("sink-resources", lambda: write(frame, 0))
        assert "free disk" in text
        assert database.rows() == []
        assert open_output(database.sink().identity()).last_written() == -1
        assert database.tables() == {"out", "slackwater_marker"}
        disk.grow(256)
        database.start(database.sink(), frame)(frame, 0)
        assert database.rows("SELECT count(*), count(DISTINCT id) FROM out") == [(20_000, 20_000)]
        # Its files are on the disk that is unmounted.
        postgres.execute(f"DROP DATABASE test_{name}")
        postgres.execute(f"DROP TABLESPACE small_{name}")


def test_a_zero_byte_in_json_and_what_only_looks_like_one(spark: SparkSession, database: Database) -> None:
    from pyspark.sql import functions as F  # noqa: PLC0415 - heavy

    frame = spark.range(1).select(F.struct(F.lit("\\u0000").alias("a")).alias("j"), F.array(F.lit("x")).alias("l"))
    write = database.start(database.sink(create=True), frame)
    write(frame, 0)
    assert database.rows("SELECT j, l FROM out") == [({"a": "\\u0000"}, ["x"])]
    _fails("sink-zero-byte", lambda: write(frame.withColumn("j", F.struct(F.lit("\0").alias("a"))), 1))
    _fails("sink-zero-byte", lambda: write(frame.withColumn("l", F.array(F.lit("\0"))), 1))
    assert len(database.rows("SELECT 1 FROM out")) == 1
