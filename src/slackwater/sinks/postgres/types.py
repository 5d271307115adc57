"""Spark's types in PostgreSQL: staging, creation, publication, and accepting columns.

A column accepts a type if no value changes silently; misfits are server errors. A decimal may not go to fewer places:
the server would round.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

_INTEGERS = frozenset({"int2", "int4", "int8", "numeric"})
_STRINGS = frozenset({"text", "varchar", "bpchar", "citext"})
_PARSED = frozenset({"uuid", "json", "jsonb", "inet", "cidr", "macaddr", "xml"})
"""Types that a string is parsed to, and that have no length to which a cast would truncate it."""
JSON = frozenset({"jsonb", "json"})


@dataclass(frozen=True, slots=True)
class Kind:
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
    kind: Kind
    nullable: bool
    spark_type: str


def staged_columns(schema: StructType) -> tuple[StagedColumn, ...]:
    """The staged columns; an unsupported type gets a kind without takers."""
    return tuple(
        StagedColumn(
            field.name,
            f"c{number}",
            kind_of(field.dataType) or Kind("", "", frozenset()),
            field.nullable,
            field.dataType.simpleString(),
        )
        for number, field in enumerate(schema.fields)
    )


def kind_of(spark: DataType) -> Kind | None:
    name = type(spark).__name__
    if name in _SIMPLE:
        return _SIMPLE[name]
    described: Any = spark
    if name == "DecimalType":
        return _decimal(described.precision, described.scale)
    if name == "ArrayType":
        return _array(described.elementType)
    if name in {"StructType", "MapType", "VariantType"}:
        return _JSON
    if hasattr(described, "sqlType"):
        return kind_of(described.sqlType())
    return None


_JSON = Kind(
    "text",
    "jsonb",
    JSON | _STRINGS,
    # By default ``to_json`` leaves out fields that are null (``spark.sql.jsonGenerator.ignoreNullFields``).
    spark="to_json({}, map('ignoreNullFields', 'false'))",
    is_text=True,
    is_json=True,
)
_STRING = Kind("text", "text", _STRINGS | _PARSED | {"enum"}, is_text=True)
_SIMPLE = {
    "BooleanType": Kind("boolean", "boolean", frozenset({"bool"})),
    # PostgreSQL has no integer of one byte.
    "ByteType": Kind("smallint", "smallint", _INTEGERS, spark="CAST({} AS SMALLINT)"),
    "ShortType": Kind("smallint", "smallint", _INTEGERS),
    "IntegerType": Kind("integer", "integer", _INTEGERS),
    "LongType": Kind("bigint", "bigint", _INTEGERS),
    "FloatType": Kind("real", "real", frozenset({"float4", "float8"})),
    "DoubleType": Kind("double precision", "double precision", frozenset({"float8"})),
    "StringType": _STRING,
    "CharType": _STRING,
    "VarcharType": _STRING,
    "BinaryType": Kind("bytea", "bytea", frozenset({"bytea"})),
    "DateType": Kind("date", "date", frozenset({"date", "timestamp"})),
    "TimestampType": Kind("timestamptz", "timestamptz", frozenset({"timestamptz"}), places=6),
    "TimestampNTZType": Kind("timestamp", "timestamp", frozenset({"timestamp"}), places=6),
    "TimeType": Kind("time", "time", frozenset({"time"}), places=6),
    "DayTimeIntervalType": Kind("interval", "interval", frozenset({"interval"}), places=6),
    "YearMonthIntervalType": Kind(
        "integer",
        "interval",
        frozenset({"interval"}),
        spark="CAST(extract(YEAR FROM {0}) * 12 + extract(MONTH FROM {0}) AS INT)",
        published="make_interval(months => {})",
    ),
    "NullType": Kind("text", "text", frozenset({"any"}), spark="CAST({} AS STRING)", published="NULL"),
}


def _decimal(precision: int, scale: int) -> Kind:
    takers = _INTEGERS if scale == 0 else frozenset({"numeric"})
    return Kind("numeric", f"numeric({precision}, {scale})", takers, places=scale)


def _array(element: DataType) -> Kind:
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


def published(kind: Kind, staged: str, taker: str, taker_type: str) -> str:
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
