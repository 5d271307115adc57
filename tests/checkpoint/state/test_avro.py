"""Rows in Avro against bytes made by the rules of ``SchemaConverters.toAvroTypeWithDefaults``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from slackwater.checkpoint.state.records import ByteView
from slackwater.checkpoint.state.rows import Spans, avro_rows
from slackwater.core.errors import FormatError
from slackwater.core.state import ArrayType, AtomicType, DataType, Field, MapType, StructType
from tests.support.errors import raises_code

LONG, STRING, VOID = AtomicType("long"), AtomicType("string"), AtomicType("void")
PAIR = StructType((Field("x", LONG), Field("y", STRING, nullable=False)))


def number(value: int) -> bytes:
    value, out = (value << 1) ^ (value >> 63), b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def union(kind: DataType, value: Any) -> bytes:
    return number(0) if value is None else number(1) + plain(kind, value)


def plain(kind: DataType, value: Any) -> bytes:
    match kind:
        case StructType(fields):
            return b"".join(union(one.type, value[one.name]) for one in fields if one.type != VOID)
        case ArrayType(element):
            return block([item(element, one) for one in value])
        case MapType(_, element):
            return block([plain(STRING, name) + item(element, one) for name, one in value])
        case AtomicType("string"):
            text: str = value
            return number(len(text)) + text.encode()
    return number(value)


def item(kind: DataType, value: Any) -> bytes:
    return plain(kind, value) if isinstance(kind, AtomicType) else union(kind, value)


def block(items: list[bytes]) -> bytes:
    return (number(len(items)) + b"".join(items) if items else b"") + number(0)


def read(body: bytes, schema: StructType) -> list[dict[str, Any]]:
    data = b"\0\0\0" + body
    rows: list[dict[str, Any]] = avro_rows(
        Spans(ByteView.of(data), np.array([0]), np.array([len(data)])), schema
    ).to_pylist()
    return rows


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (LONG, 42),
        (LONG, 0),
        (LONG, None),
        (ArrayType(LONG), [0, 0, 0]),
        (ArrayType(LONG), [1, 0, -5]),
        (ArrayType(LONG), []),
        (ArrayType(LONG), None),
        (ArrayType(PAIR), [{"x": 0, "y": "a"}, None, {"x": None, "y": ""}]),
        (ArrayType(ArrayType(LONG)), [[0], None, []]),
        (MapType(STRING, LONG), [("k", 0), ("l", 7)]),
        (MapType(STRING, ArrayType(STRING)), [("k", ["a", ""]), ("l", None)]),
        (PAIR, {"x": 3, "y": "b"}),
        (PAIR, None),
        (VOID, None),
    ],
    ids=str,
)
@pytest.mark.parametrize("nullable", [True, False])
def test_rows(kind: DataType, value: Any, nullable: bool) -> None:
    schema = StructType((Field("first", kind, nullable=nullable), Field("rest", LONG, nullable=False)))
    row = {"first": value, "rest": 9}

    assert read(plain(schema, row), schema) == [row]


def test_another_branch_of_the_union_is_foreign() -> None:
    with raises_code(FormatError, "foreign"):
        read(number(2) + number(7), StructType((Field("a", LONG),)))
