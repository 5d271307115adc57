"""Staging without Spark: Arrow batches as a task gets them, to a real server; and which columns take which types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from pyspark.sql import types as T

from slackwater.core.errors import PipelineError
from slackwater.sinks.common.database import Address
from slackwater.sinks.postgres.staging import Staging, stager
from slackwater.sinks.postgres.table import (
    PostgresName,
    Publication,
    StagedColumn,
    check_types,
    create_statements,
    match_columns,
    read_columns,
    run,
    staged_columns,
)
from tests.support.postgres_server import PostgresServer

TABLE = PostgresName("public", "out")


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.url(postgres.new_database())


def stage(url: str, columns: Sequence[StagedColumn], *values: Sequence[Any]) -> list[dict[str, Any]]:
    """Stage one batch of columns; what the task returns."""
    staging = Staging(
        url,
        "public",
        "slackwater_stage_test_",
        tuple(f"{column.staged_name} {column.kind.staged}" for column in columns),
        tuple(column.name for column in columns),
        tuple(place for place, column in enumerate(columns) if column.kind.is_text),
        tuple(place for place, column in enumerate(columns) if column.kind.is_json),
    )
    batch = pa.record_batch([pa.array(each) for each in values], [column.staged_name for column in columns])
    return [row for result in stager(staging)([batch]) for row in result.to_pylist()]


def test_each_attempt_has_a_table_of_its_own_and_only_named_ones_are_published(url: str) -> None:
    columns = staged_columns(T.StructType().add("id", "long").add("name", "string"))
    first, retried = (stage(url, columns, [1, 2], ["a", None])[0] for _ in range(2))
    assert first["staged"] != retried["staged"]
    assert first["row_count"] == 2
    assert stage(url, columns, pa.array([], pa.int64()), pa.array([], pa.string())) == []
    with Address(url).engine().begin() as connection:
        for statement in create_statements(TABLE, columns, (), batch=True, version=150000):
            run(connection, statement)
        filled = match_columns(TABLE, columns, read_columns(connection, TABLE), batch=True)
        publication = Publication(TABLE, "insert", (), filled, batch_column=True)
        publication.publish(connection, {retried["staged"]: retried["row_count"]}, 7, url)
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT * FROM out ORDER BY 1").fetchall() == [(1, "a", 7), (2, None, 7)]
        unlogged = connection.execute(
            "SELECT relname FROM pg_class WHERE relpersistence = 'u' AND relkind = 'r'"
        ).fetchall()
    assert unlogged == [(first["staged"],)]


@pytest.mark.parametrize(
    ("spark", "values"),
    [
        (T.StringType(), ["fine", "a\0b"]),
        (T.ArrayType(T.StringType()), [["fine"], ["a", "\0"]]),
        (T.StructType().add("a", "string"), ['{"a":"\\u0000"}']),
        (T.StructType().add("a", "string"), ['{"a":"\\\\\\u0000"}']),
    ],
)
def test_a_zero_byte_is_refused_with_its_column(url: str, spark: T.DataType, values: list[Any]) -> None:
    columns = staged_columns(T.StructType().add("words", spark))
    with pytest.raises(ValueError, match=r"\[slackwater sink-zero-byte\] in column words"):
        stage(url, columns, values)
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (0,)


def test_an_escaped_backslash_before_zeros_is_no_zero_byte(url: str) -> None:
    columns = staged_columns(T.StructType().add("words", T.StructType().add("a", "string")))
    assert stage(url, columns, ['{"a":"\\\\u0000"}'])[0]["row_count"] == 1


@pytest.mark.parametrize(
    ("spark", "taken", "refused"),
    [
        (T.LongType(), ("bigint", "integer", "numeric(5)"), ("real", "double precision", "text")),
        (T.DecimalType(10, 2), ("numeric", "numeric(12, 2)", "numeric(10, 4)"), ("numeric(10, 1)", "integer")),
        (T.DecimalType(10, 0), ("bigint", "numeric(4)"), ("numeric(5, -2)",)),
        (T.StringType(), ("text", "varchar(3)", "char(3)", "uuid", "jsonb", "mood"), ("integer", "bytea")),
        (T.TimestampType(), ("timestamptz",), ("timestamp", "timestamptz(3)", "date")),
        (T.TimestampNTZType(), ("timestamp",), ("timestamptz", "timestamp(0)")),
        (T.ArrayType(T.IntegerType()), ("integer[]", "bigint[]", "jsonb"), ("text[]", "integer")),
        (T.ArrayType(T.DecimalType(5, 2)), ("numeric[]", "jsonb"), ("numeric(5, 1)[]",)),
        (T.MapType(T.StringType(), T.LongType()), ("jsonb", "json", "text"), ("integer",)),
        (T.DoubleType(), ("double precision",), ("real", "numeric", "integer")),
        (T.NullType(), ("integer", "text"), ()),
    ],
    ids=lambda value: value.simpleString() if isinstance(value, T.DataType) else "",
)
def test_a_column_takes_a_type_only_if_no_value_changes_silently(
    url: str, spark: T.DataType, taken: tuple[str, ...], refused: tuple[str, ...]
) -> None:
    columns = staged_columns(T.StructType().add("v", spark))
    with Address(url).engine().begin() as connection:
        run(connection, "CREATE TYPE mood AS ENUM ('good')")
        for declared in (*taken, *refused):
            run(connection, f"CREATE TABLE out (v {declared})")
            found = read_columns(connection, TABLE)
            if declared in taken:
                filled = match_columns(TABLE, columns, found, batch=False)
                run(connection, f"CREATE TEMP TABLE staged (c0 {columns[0].kind.staged})")
                run(connection, f"INSERT INTO out SELECT {filled['v']} FROM staged")
                run(connection, "DROP TABLE staged")
            else:
                with pytest.raises(PipelineError) as error:
                    match_columns(TABLE, columns, found, batch=False)
                assert error.value.code == "sink-column-type", declared
            run(connection, "DROP TABLE out")


@pytest.mark.parametrize(
    ("schema", "code"),
    [
        (T.StructType().add("a", "string").add("a", "long"), "sink-columns"),
        (T.StructType().add("ü" * 32, "string"), "sink-columns"),
        (T.StructType().add("_slackwater_batch", "long"), "sink-columns"),
        (T.StructType().add("a", T.CalendarIntervalType()), "sink-type"),
        (T.StructType().add("a", T.ArrayType(T.CalendarIntervalType())), "sink-type"),
    ],
)
def test_a_query_that_no_table_can_take(schema: T.StructType, code: str) -> None:
    with pytest.raises(PipelineError) as refused:
        check_types(staged_columns(schema), TABLE)
    assert refused.value.code == code
