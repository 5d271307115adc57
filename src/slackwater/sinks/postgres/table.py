"""A PostgreSQL table: its name, its columns for Spark's types, created, compared with the query, and filled.

Names are never truncated by the server. A column accepts a type if no value changes silently; misfits are
server errors. A decimal may not go to fewer places: the server would round.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import Connection

from slackwater.core.errors import PipelineError
from slackwater.sinks.common.marker import lost

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType


NAME_BYTES_MAX = 63
"""The server cuts longer names silently (NAMEDATALEN)."""
BATCH_COLUMN = "_slackwater_batch"


@dataclass(frozen=True, slots=True)
class PostgresName:
    schema: str
    table: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"

    @property
    def quoted(self) -> str:
        return f"{quoted(self.schema)}.{quoted(self.table)}"

    def next_to(self, table: str) -> PostgresName:
        return PostgresName(self.schema, table)

    def staging(self, operation: str) -> PostgresName:
        known = sha256(f"{self}".encode()).hexdigest()[:8]
        return self.next_to(f"slackwater_swap_{re.sub('[^a-z0-9]+', '_', operation.lower())}_{known}")

    def staged_prefix(self, stream_id: str) -> str:
        """The prefix of a stream's staged tables; 32 characters follow."""
        return f"slackwater_stage_{sha256(f'{stream_id}/{self}'.encode()).hexdigest()[:12]}_"


def table_name(name: object) -> PostgresName:
    """The table's name, by default in schema ``public``. Raises PipelineError (``sink-table``)."""
    schema, dot, table = name.rpartition(".") if isinstance(name, str) else ("", "", "")
    parts = (schema if dot else "public", table)
    if not all(fits(part) and part == part.strip() and "." not in part for part in parts):
        raise PipelineError(
            "sink-table",
            "The name of a table cannot be used",
            expected=f"TABLE or SCHEMA.TABLE without quotes, each at most {NAME_BYTES_MAX} bytes",
            found=repr(name),
        )
    return PostgresName(*parts)


def fits(name: str) -> bool:
    return 0 < len(name.encode(errors="replace")) <= NAME_BYTES_MAX and "\0" not in name


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def run(connection: Connection, statement: str) -> Sequence[Sequence[Any]]:
    # Without this option psycopg takes a % in a name for a parameter.
    result = connection.execution_options(no_parameters=True).exec_driver_sql(statement)
    return [tuple(row) for row in result] if result.returns_rows else []


def count(connection: Connection, statement: str) -> int:
    return connection.execution_options(no_parameters=True).exec_driver_sql(statement).rowcount


def count_rows(connection: Connection, table: PostgresName, condition: str = "") -> int:
    return int(run(connection, f"SELECT count(*) FROM {table.quoted}{condition}")[0][0])


_INTEGERS = frozenset({"int2", "int4", "int8", "numeric"})
_STRINGS = frozenset({"text", "varchar", "bpchar", "citext"})
_PARSED = frozenset({"uuid", "json", "jsonb", "inet", "cidr", "macaddr", "xml"})
"""Types that a string is parsed to, and that have no length to which a cast would truncate it."""
JSON = frozenset({"jsonb", "json"})


@dataclass(frozen=True, slots=True)
class ColumnKind:
    """``spark`` is the staged expression, ``published`` the staged column's; {} is the column.

    ``takers`` are accepting types (``pg_type.typname``), ``places`` the needed decimal places.
    """

    staged: str
    created: str
    takers: frozenset[str]
    spark: str = "{}"
    published: str = "{}"
    places: int | None = None
    is_text: bool = False
    is_json: bool = False


@dataclass(frozen=True, slots=True)
class StagedColumn:
    name: str
    staged_name: str
    kind: ColumnKind
    spark_type: str


def staged_columns(schema: StructType) -> tuple[StagedColumn, ...]:
    """The staged columns; an unsupported type gets a kind without takers."""
    return tuple(
        StagedColumn(
            field.name,
            f"c{number}",
            kind_of(field.dataType) or ColumnKind("", "", frozenset()),
            field.dataType.simpleString(),
        )
        for number, field in enumerate(schema.fields)
    )


def kind_of(spark: DataType) -> ColumnKind | None:
    name = type(spark).__name__
    if name in _SIMPLE:
        return _SIMPLE[name]
    described: Any = spark
    if name == "DecimalType":
        takers = _INTEGERS if described.scale == 0 else frozenset({"numeric"})
        return ColumnKind(
            "numeric", f"numeric({described.precision}, {described.scale})", takers, places=described.scale
        )
    if name == "ArrayType":
        return _array(described.elementType)
    if name in {"StructType", "MapType", "VariantType"}:
        return _JSON
    if hasattr(described, "sqlType"):
        return kind_of(described.sqlType())
    return None


_JSON = ColumnKind(
    "text",
    "jsonb",
    JSON | _STRINGS,
    # By default ``to_json`` leaves out fields that are null (``spark.sql.jsonGenerator.ignoreNullFields``).
    spark="to_json({}, map('ignoreNullFields', 'false'))",
    is_text=True,
    is_json=True,
)
_STRING = ColumnKind("text", "text", _STRINGS | _PARSED | {"enum"}, is_text=True)
_SIMPLE = {
    "BooleanType": ColumnKind("boolean", "boolean", frozenset({"bool"})),
    # PostgreSQL has no integer of one byte.
    "ByteType": ColumnKind("smallint", "smallint", _INTEGERS, spark="CAST({} AS SMALLINT)"),
    "ShortType": ColumnKind("smallint", "smallint", _INTEGERS),
    "IntegerType": ColumnKind("integer", "integer", _INTEGERS),
    "LongType": ColumnKind("bigint", "bigint", _INTEGERS),
    "FloatType": ColumnKind("real", "real", frozenset({"float4", "float8"})),
    "DoubleType": ColumnKind("double precision", "double precision", frozenset({"float8"})),
    "StringType": _STRING,
    "CharType": _STRING,
    "VarcharType": _STRING,
    "BinaryType": ColumnKind("bytea", "bytea", frozenset({"bytea"})),
    "DateType": ColumnKind("date", "date", frozenset({"date", "timestamp"})),
    "TimestampType": ColumnKind("timestamptz", "timestamptz", frozenset({"timestamptz"}), places=6),
    "TimestampNTZType": ColumnKind("timestamp", "timestamp", frozenset({"timestamp"}), places=6),
    "TimeType": ColumnKind("time", "time", frozenset({"time"}), places=6),
    "DayTimeIntervalType": ColumnKind("interval", "interval", frozenset({"interval"}), places=6),
    "YearMonthIntervalType": ColumnKind(
        "integer",
        "interval",
        frozenset({"interval"}),
        spark="CAST(extract(YEAR FROM {0}) * 12 + extract(MONTH FROM {0}) AS INT)",
        published="make_interval(months => {})",
    ),
    "NullType": ColumnKind("text", "text", frozenset({"any"}), spark="CAST({} AS STRING)", published="NULL"),
}


def _array(element: DataType) -> ColumnKind:
    """The kind of an array: simple types stay arrays.

    PostgreSQL has only rectangular nested arrays, so these are JSON.
    """
    kind = kind_of(element)
    if kind is None:
        return replace(_JSON, takers=frozenset())
    if kind.published != "{}" or kind.is_json or kind.staged.endswith("[]"):
        return _JSON
    cast = "CAST({} AS ARRAY<SMALLINT>)" if kind.spark != "{}" else "{}"
    takers = frozenset(f"_{taker}" for taker in kind.takers - _PARSED - {"enum"}) | {"jsonb"}
    return replace(
        kind, staged=f"{kind.staged}[]", created=f"{kind.created}[]", takers=takers, spark=cast, is_json=False
    )


def published(kind: ColumnKind, staged: str, taker: str, taker_type: str) -> str:
    """The expression that publishes a staged column to a ``taker`` column.

    An explicit cast would truncate strings; an assignment reports an error.
    """
    value = kind.published.format(staged)
    if kind.is_json and taker in JSON:
        return f"{value}::{taker}"
    if kind.staged.endswith("[]") and taker == "jsonb":
        return f"to_jsonb({value})"
    if kind.is_text and not kind.is_json and taker not in _STRINGS and not taker.startswith("_"):
        return f"{value}::{taker_type}"
    return value


NULLS_NOT_DISTINCT_SINCE = 150000
_KEEPS_PLACES = frozenset({"timestamptz", "timestamp", "time", "interval"})


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column. ``kind`` is the type name, ``declared`` includes length or precision."""

    name: str
    kind: str
    declared: str
    modifier: int
    is_enum: bool
    not_null: bool
    filled: bool
    generated: bool

    @property
    def places(self) -> int | None:
        """The decimal places, ``None`` for unlimited."""
        if self.modifier < 0:
            return None
        base = self.kind.removeprefix("_")
        if base == "numeric":
            # Eleven bits with a sign, below the precision (NUMERIC_SCALE_BITS in the server's numeric.c).
            return (((self.modifier - 4) & 0x7FF) ^ 0x400) - 0x400
        # The lower half of an interval's modifier is its precision.
        return self.modifier & 0xFFFF if base in _KEEPS_PLACES else None


def read_columns(connection: Connection, table: PostgresName) -> tuple[TableColumn, ...]:
    """The columns; empty without a table or updatable view."""
    rows = run(
        connection,
        "SELECT a.attname, t.typname, format_type(a.atttypid, a.atttypmod), a.atttypmod, t.typtype = 'e', "
        "a.attnotnull, a.atthasdef OR a.attidentity <> '', a.attgenerated <> '' "
        "FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid JOIN pg_class c ON c.oid = a.attrelid "
        "JOIN pg_namespace n ON n.oid = c.relnamespace "
        f"WHERE n.nspname = {literal(table.schema)} AND c.relname = {literal(table.table)} "
        "AND c.relkind IN ('r', 'p', 'v', 'f') AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
    )
    return tuple(TableColumn(*row) for row in rows)


def create_statements(
    table: PostgresName, columns: Sequence[StagedColumn], keys: Sequence[str], *, batch: bool, version: int
) -> list[str]:
    lines = [f"{quoted(column.name)} {column.kind.created}" for column in columns]
    if batch:
        lines.append(f"{BATCH_COLUMN} bigint NOT NULL")
    if keys:
        # A null key is a key: Spark groups by it, too.
        nulls = "NULLS NOT DISTINCT " if version >= NULLS_NOT_DISTINCT_SINCE else ""
        lines.append(f"UNIQUE {nulls}({', '.join(quoted(key) for key in keys)})")
    return [f"CREATE TABLE IF NOT EXISTS {table.quoted} ({', '.join(lines)})"]


def check_types(columns: Sequence[StagedColumn], table: PostgresName) -> None:
    """Raises PipelineError for a column that PostgreSQL cannot take or would rename."""
    for column in columns:
        if not column.kind.takers:
            raise PipelineError(
                "sink-type",
                f"PostgreSQL has no type for column {column.name}",
                where=str(table),
                found=column.spark_type,
                hint="cast it in the query, for example to a string",
            )
        if not fits(column.name) or column.name == BATCH_COLUMN:
            raise _unusable(table, "a name of at most 63 bytes that is not the sink's own", column.name)
    names = [column.name for column in columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise _unusable(table, "each name once", ", ".join(twice))


def match_columns(
    table: PostgresName, query: Sequence[StagedColumn], found: Sequence[TableColumn], *, batch: bool
) -> dict[str, str]:
    known = {column.name: column for column in found}
    missing = [column.name for column in query if column.name not in known]
    if batch and BATCH_COLUMN not in known:
        missing.append(BATCH_COLUMN)
    if missing:
        raise _unusable(table, f"columns {', '.join(missing)} of the query in the table", ", ".join(sorted(known)))
    given = {column.name for column in query} | ({BATCH_COLUMN} if batch else set())
    unfilled = [c.name for c in found if c.name not in given and c.not_null and not c.filled and not c.generated]
    if unfilled:
        raise _unusable(table, f"a value for {', '.join(unfilled)}, which must not be null", ", ".join(sorted(given)))
    expressions = dict[str, str]()
    for column in query:
        kind, taker = column.kind, known[column.name]
        takes = "any" in kind.takers or taker.kind in kind.takers or (taker.is_enum and "enum" in kind.takers)
        exact = kind.places is None or taker.places is None or taker.places >= kind.places or taker.kind == "jsonb"
        if not takes or not exact or taker.generated:
            raise PipelineError(
                "sink-column-type",
                f"Column {column.name} of the table cannot hold the query's values unchanged",
                where=f"{table}.{column.name}",
                expected=f"{column.spark_type}: {kind.created} in PostgreSQL",
                found="a generated column" if taker.generated else taker.declared,
                hint=f"cast it in the query, or: ALTER TABLE {table} ALTER COLUMN {column.name} TYPE {kind.created}",
            )
        expressions[column.name] = published(kind, column.staged_name, taker.kind, taker.declared)
    return expressions


def check_keys(connection: Connection, table: PostgresName, keys: Sequence[str]) -> None:
    """Raises PipelineError unless a unique index finds each row by ``keys``, including nulls."""
    version = server_version(connection)
    nulls = "i.indnullsnotdistinct" if version >= NULLS_NOT_DISTINCT_SINCE else "false"
    # ON CONFLICT with column names alone finds no index that has a predicate or an expression.
    rows = run(
        connection,
        f"SELECT array_agg(a.attname::text ORDER BY a.attname), bool_or({nulls}) OR bool_and(a.attnotnull) "
        "FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey) "
        f"WHERE i.indrelid = {literal(table.quoted)}::regclass AND i.indisunique AND i.indisvalid "
        "AND i.indpred IS NULL AND i.indexprs IS NULL GROUP BY i.indexrelid",
    )
    found = {tuple(row[0]): bool(row[1]) for row in rows}
    if found.get(tuple(sorted(keys))):
        return
    clause = "NULLS NOT DISTINCT " if version >= NULLS_NOT_DISTINCT_SINCE else ""
    columns = ", ".join(quoted(key) for key in keys)
    raise PipelineError(
        "sink-keys",
        "The table has no usable unique index on the sink's keys",
        where=str(table),
        expected=f"a unique index on {columns}, its columns NOT NULL or the index NULLS NOT DISTINCT",
        found="; ".join(sorted(", ".join(names) for names in found)) or "no unique index",
        hint=f"ALTER TABLE {table} ADD UNIQUE {clause}({columns})",
    )


def server_version(connection: Connection) -> int:
    return int(run(connection, "SHOW server_version_num")[0][0])


def _unusable(table: PostgresName, expected: str, found: str) -> PipelineError:
    return PipelineError(
        "sink-columns",
        "The columns of the query and of the table do not match",
        where=str(table),
        expected=expected,
        found=found or "none",
        hint="change the query or the table, or let the sink create a new one: create=True",
    )


Mode = Literal["insert", "upsert", "replace"]


@dataclass(frozen=True, slots=True)
class Publication:
    table: PostgresName
    mode: Mode
    keys: tuple[str, ...]
    filled: Mapping[str, str]
    batch_column: bool = False

    def publish(self, connection: Connection, staged: Mapping[str, int], batch: int, where: str) -> None:
        """Publish and drop staged tables, given with their rows. Raises StreamFailed if rows are lost."""
        if self.mode == "replace":
            # Not TRUNCATE: it waits for all readers, and shows an empty table to those with an older snapshot.
            run(connection, f"DELETE FROM {self.table.quoted}")
        filled = dict(self.filled) | ({BATCH_COLUMN: str(batch)} if self.batch_column else {})
        into = f"INSERT INTO {self.table.quoted} ({', '.join(quoted(name) for name in filled)})"
        select = ", ".join(filled.values())
        selects = [f"SELECT {select} FROM {self.table.next_to(name).quoted}" for name in staged]
        inserts = [(f"{into} {each}", rows) for each, rows in zip(selects, staged.values(), strict=True)]
        if self.mode == "upsert" and selects:
            keys = ", ".join(quoted(key) for key in self.keys)
            others = [f"{quoted(name)} = excluded.{quoted(name)}" for name in self.filled if name not in self.keys]
            conflict = f"ON CONFLICT ({keys}) DO " + (f"UPDATE SET {', '.join(others)}" if others else "NOTHING")
            # One statement for all: only so the server sees a key that two tasks staged.
            inserts = [(f"{into} {' UNION ALL '.join(selects)} {conflict}", sum(staged.values()))]
        differ = [count(connection, statement) != rows for statement, rows in inserts]
        for name, rows in staged.items():
            table = self.table.next_to(name)
            # A trigger or a rule of the table may take other rows than it is given, as may keys without other columns.
            found = count_rows(connection, table) if any(differ) else rows
            if found != rows:
                raise lost(where, rows, found)
            run(connection, f"DROP TABLE {table.quoted}")


def drop_staged(connection: Connection, table: PostgresName, staged: Iterable[str]) -> None:
    for name in staged:
        run(connection, f"DROP TABLE IF EXISTS {table.next_to(name).quoted}")


def drop_orphans(connection: Connection, table: PostgresName, stream_id: str) -> None:
    rows = run(
        connection,
        f"SELECT tablename FROM pg_tables WHERE schemaname = {literal(table.schema)} "
        f"AND starts_with(tablename::text, {literal(table.staged_prefix(stream_id))})",
    )
    drop_staged(connection, table, [row[0] for row in rows])
