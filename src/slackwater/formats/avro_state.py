"""State rows in Avro (``stateStore.encodingFormat=avro``, 4.0 and later): version byte, schema id, Avro binary.

The schema is ``SchemaConverters.toAvroTypeWithDefaults``: a record in column order. Each field is a union ``[null,
type]``, nullable or not, except void, which has no bytes. In arrays and maps only structs, arrays and maps are unions.
A key's prefix has no schema id.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa

from slackwater.core.errors import FormatError
from slackwater.core.state import ArrayType, AtomicType, DataType, DecimalType, Field, MapType, StructType
from slackwater.formats.state_rows import Spans, after_version_byte

_ATOMIC: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "string": pa.string(),
    "binary": pa.binary(),
    "void": pa.null(),
}


def arrow_type(kind: DataType) -> pa.DataType:
    """Raises ``FormatError`` (``too-new``) for an unknown name."""
    match kind:
        case AtomicType(name) if name in _ATOMIC:
            return _ATOMIC[name]
        case AtomicType(name):
            raise FormatError("too-new", "a type that is not known", expected="a type of Spark 3.5 to 4.3", found=name)
        case DecimalType(precision, scale):
            return pa.decimal128(precision, scale)
        case ArrayType(element):
            return pa.list_(arrow_type(element))
        case MapType(key, value):
            return pa.map_(arrow_type(key), arrow_type(value))
        case StructType(fields):
            return pa.struct([pa.field(field.name, arrow_type(field.type)) for field in fields])


_ID_BYTES = 2
_MOST_EMPTY_ITEMS = 1000
_LONGEST_VARINT = 10
_VOID = AtomicType("void")
_NULL, _NOT_NULL = 0, 1


class AvroRows:
    """``writers`` are value schemas by id; keys never change."""

    def __init__(self, writers: Mapping[int, StructType] | None = None, *, has_id: bool = True) -> None:
        self._writers = writers or {}
        self._has_id = has_id

    def read(self, spans: Spans, schema: StructType) -> pa.StructArray:
        body = after_version_byte(spans)
        ids = [0] * len(body.starts)
        if self._has_id:
            rest = body.cut(_ID_BYTES)
            ids = body.view.integers(body.starts, "<i2").tolist()
            body = rest
        data, first = body.copied()
        rows = [
            _project(_read_row(data, start, start + length, self._writers.get(number, schema)), schema)
            for start, length, number in zip((body.starts - first).tolist(), body.lengths.tolist(), ids, strict=True)
        ]
        try:
            return pa.array(rows, arrow_type(schema))
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError, ValueError) as error:
            raise FormatError(
                "foreign", "not rows of this schema", expected=str(schema.names), found=str(error)
            ) from error


def _project(row: dict[str, Any], schema: StructType) -> dict[str, Any]:
    return {name: row.get(name) for name in schema.names}


def _read_row(data: bytes, start: int, end: int, schema: StructType) -> dict[str, Any]:
    reader = _AvroReader(data, start, end)
    row = reader.record(schema)
    if reader.position != end:
        raise FormatError(
            "foreign", "bytes after an Avro row", expected="the end", found=f"{end - reader.position} bytes"
        )
    return row


class _AvroReader:
    def __init__(self, data: bytes, position: int, end: int) -> None:
        self._data = data
        self.position = position
        self._end = end

    def record(self, schema: StructType) -> dict[str, Any]:
        return {field.name: self._field(field) for field in schema.fields}

    def _field(self, field: Field) -> Any:
        return None if field.type == _VOID else self._union(field.type)

    def _element(self, kind: DataType) -> Any:
        return self._union(kind) if isinstance(kind, StructType | ArrayType | MapType) else self._value(kind)

    def _union(self, kind: DataType) -> Any:
        branch = self._long()
        if branch not in {_NULL, _NOT_NULL}:
            raise FormatError("foreign", "not a nullable field in Avro", expected="branch 0 or 1", found=str(branch))
        return self._value(kind) if branch == _NOT_NULL else None

    def _value(self, kind: DataType) -> Any:
        match kind:
            case StructType():
                return self.record(kind)
            case DecimalType(precision, scale):
                unscaled = int.from_bytes(self._take((len(f"{10**precision:b}") + 8) // 8), "big", signed=True)
                return Decimal(unscaled).scaleb(-scale)
            case ArrayType(element):
                return self._items(lambda: self._element(element))
            case MapType(_, value):
                return self._items(lambda: (self._text(), self._element(value)))
            case AtomicType(name):
                return self._atomic(name)

    def _atomic(self, name: str) -> Any:
        match name:
            case "byte" | "short" | "integer" | "long" | "date" | "timestamp" | "timestamp_ntz":
                return self._long()
            case "boolean":
                return self._take(1) != b"\0"
            case "float":
                return struct.unpack("<f", self._take(4))[0]
            case "double":
                return struct.unpack("<d", self._take(8))[0]
            case "string":
                return self._text()
            case "binary":
                return self._take(self._long())
            case "void":
                return None
            case _:
                raise FormatError("too-new", "a type unknown in Avro state", expected="a type of 4.3", found=name)

    def _items(self, read_one: Callable[[], Any]) -> list[Any]:
        """Arrays and maps come in blocks with counts, until a count of 0."""
        items: list[Any] = []
        while count := self._long():
            if count < 0:
                # A negative count is followed by the size of the block in bytes, for readers that skip it.
                count = -count
                self._long()
            # Each item but a void takes at least one byte; a larger count is damage, for which no memory may be taken.
            if count > self._end - self.position + _MOST_EMPTY_ITEMS:
                raise FormatError("torn", "a list too long to be one", expected="a count", found=str(count))
            items.extend(read_one() for _ in range(count))
        return items

    def _text(self) -> str:
        try:
            return self._take(self._long()).decode()
        except UnicodeDecodeError as error:
            raise FormatError("foreign", "a string is not UTF-8", expected="UTF-8", found=str(error)) from error

    def _long(self) -> int:
        value = 0
        for place in range(_LONGEST_VARINT):
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << (7 * place)
            if not byte & 0x80:
                return (value >> 1) ^ -(value & 1)
        raise FormatError("torn", "a number too long to be one", expected="a varint", found=f"byte {self.position}")

    def _take(self, count: int) -> bytes:
        end = self.position + count
        if count < 0 or end > self._end:
            raise FormatError("torn", "an Avro row is cut", expected=f"{count} bytes", found="the end")
        taken = self._data[self.position : end]
        self.position = end
        return taken
