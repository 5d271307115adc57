"""State keys and values as Arrow columns, for all providers and encodings.

HDFS-backed stores keep bare UnsafeRows. RocksDB stores put a version byte before each row, lay keys out to sort, and
can hold Avro instead (``RocksDBStateEncoder``).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from slackwater.checkpoint.state.records import ByteView, Positions
from slackwater.checkpoint.state.unsafe_row import FIXED, read_rows, whole_rows
from slackwater.core.errors import FormatError
from slackwater.core.state import ArrayType, AtomicType, DataType, DecimalType, Field, KeyEncoding, MapType, StructType

_LENGTH_BYTES = 4
_TIME_BYTES = 8
_VERSION_BYTES = 1
_SIGN_BIT = np.uint64(1 << 63)


class Spans(NamedTuple):
    """Starts and lengths of encoded keys or values."""

    view: ByteView
    starts: Positions
    lengths: Positions

    def cut(self, front: Positions | int, back: int = 0) -> Spans:
        """The pieces without bytes at either end. Raises ``FormatError`` for shorter pieces."""
        lengths = self.lengths - front - back
        if (lengths < 0).any():
            raise FormatError("torn", "a row is too short", expected="more bytes", found=str(int(self.lengths.min())))
        return Spans(self.view, self.starts + front, lengths)

    def copied(self) -> tuple[bytes, int]:
        if not len(self.starts):
            return b"", 0
        first = int(self.starts.min())
        return self.view.slice(first, int((self.starts + self.lengths).max())), first


RowFormat = Callable[[Spans, StructType], pa.StructArray]
"""Reads rows in an encoding. Raises ``FormatError``."""


def bare_rows(spans: Spans, schema: StructType) -> pa.StructArray:
    return read_rows(whole_rows(spans.view, spans.starts, spans.lengths), schema)


def versioned_rows(spans: Spans, schema: StructType) -> pa.StructArray:
    """UnsafeRows behind a version byte, which is 0."""
    return bare_rows(after_version_byte(spans), schema)


def after_version_byte(spans: Spans) -> Spans:
    """Raises ``FormatError`` if the byte is not 0."""
    rest = spans.cut(_VERSION_BYTES)
    versions = spans.view.bytes[spans.starts]
    if versions.any():
        raise FormatError("foreign", "a row's version is unknown", expected="version byte 0", found=str(versions.max()))
    return rest


def read_keys(
    spans: Spans, schema: StructType, encoding: KeyEncoding, rows: RowFormat, prefix: RowFormat | None = None
) -> pa.StructArray:
    """A RocksDB store's keys. ``prefix`` is the encoding of a prefix, if it differs. Raises ``FormatError``;
    ``too-new`` for an unknown encoding.
    """
    match encoding.kind:
        case "NoPrefix":
            return rows(spans, schema)
        case "PrefixKeyScan":
            count = encoding.prefix_columns
            front, back = _split(spans)
            first = (prefix or rows)(front, StructType(schema.fields[:count]))
            parts = (first, rows(back, StructType(schema.fields[count:])))
            columns = [part.field(index) for part in parts for index in range(part.type.num_fields)]
            return _named(columns, schema) if columns else pa.array([{}] * len(spans.starts), pa.struct([]))
        case "RangeKeyScan":
            return _read_range_keys(spans, schema, encoding.ordering, rows)
        case "TimestampAsPrefix":
            return _with_time(rows, spans.cut(_TIME_BYTES), schema, spans.starts)
        case "TimestampAsPostfix":
            rest = spans.cut(0, _TIME_BYTES)
            return _with_time(rows, rest, schema, spans.starts + rest.lengths)
        case kind:
            raise FormatError("too-new", "a key encoding that is not known", expected="one of 4.3", found=kind)


def _split(spans: Spans) -> tuple[Spans, Spans]:
    # Only for its check: the length of a key that is shorter than 4 bytes would be read from the bytes behind it.
    spans.cut(_LENGTH_BYTES)
    lengths = spans.view.integers(spans.starts, "<i4")
    if (lengths < 0).any():
        raise FormatError("torn", "a key with a negative part", expected="a length", found=str(int(lengths.min())))
    rest = spans.cut(_LENGTH_BYTES + lengths)
    return Spans(spans.view, spans.starts + _LENGTH_BYTES, lengths), rest


def _named(columns: Sequence[pa.Array], schema: StructType) -> pa.StructArray:
    fields = [pa.field(name, column.type) for name, column in zip(schema.unique_names, columns, strict=True)]
    return pa.StructArray.from_arrays(columns, fields=fields)


def _with_time(rows: RowFormat, rest: Spans, schema: StructType, positions: Positions) -> pa.StructArray:
    """Keys with event times at ``positions``: big-endian with the sign bit turned, so that bytes sort like numbers."""
    columns = rows(rest, StructType(schema.fields[:-1]))
    turned = rest.view.read(positions, ">u8").astype(np.uint64) ^ _SIGN_BIT
    micros = pa.array(turned.view(np.int64))
    is_timestamp = schema.fields[-1].type == AtomicType("timestamp")
    times = micros.view(pa.timestamp("us", "UTC")) if is_timestamp else micros
    return _named([*(columns.field(index) for index in range(columns.type.num_fields)), times], schema)


def _read_range_keys(spans: Spans, schema: StructType, ordering: tuple[int, ...], rows: RowFormat) -> pa.StructArray:
    """Sortable columns: a marker byte (0 negative, 1 positive, 2 null) and the value big-endian."""
    if any(not 0 <= ordinal < len(schema.fields) for ordinal in ordering):
        raise FormatError("foreign", "an ordinal without a column", expected="a column", found=str(ordering))
    front, back = _split(spans)
    others = [index for index in range(len(schema.fields)) if index not in ordering]
    sorted_fields = StructType(tuple(Field(schema.fields[index].name, AtomicType("binary")) for index in ordering))
    first = rows(front, sorted_fields)
    columns: dict[int, pa.Array] = {
        ordinal: _read_sortable(first.field(place), schema.fields[ordinal]) for place, ordinal in enumerate(ordering)
    }
    if others:
        rest = rows(back, StructType(tuple(schema.fields[index] for index in others)))
        columns |= {ordinal: rest.field(place) for place, ordinal in enumerate(others)}
    ordered = [columns[index] for index in range(len(schema.fields))]
    return _named(ordered, schema)


_NEGATIVE, _NULL = 0, 2


def _read_sortable(column: pa.Array, field: Field) -> pa.Array:
    name = field.type.name if isinstance(field.type, AtomicType) else ""
    if name == "boolean":
        return pa.array(
            [None if item is None or item[:1] == b"\2" else item[-1:] == b"\1" for item in column.to_pylist()],
            pa.bool_(),
        )
    if name not in FIXED:
        raise FormatError("too-new", "a type that Spark does not sort by", expected="a number", found=str(field.type))
    kind, arrow_type = FIXED[name]
    big_endian = kind.replace("<f", "<u").replace("<", ">")
    width = np.dtype(kind).itemsize + 1
    encoded: list[bytes] = [item or b"" for item in column.to_pylist()]
    if any(len(item) not in {width, 1} for item in encoded):
        raise FormatError("torn", "a sorted column of a different width", expected=f"{width} bytes", found="other")
    joined = np.frombuffer(b"".join(item.ljust(width, b"\0") for item in encoded), np.uint8).reshape(-1, width)
    values = np.ascontiguousarray(joined[:, 1:]).view(big_endian)[:, 0]
    if name in {"float", "double"}:
        # The bits of a negative number are all turned, so that the larger sorts first.
        values = np.where(joined[:, 0] == _NEGATIVE, ~values, values).astype(big_endian.replace(">", "<")).view(kind)
    plain = pa.array(values.astype(values.dtype.newbyteorder("=")), mask=joined[:, 0] == _NULL)
    return plain if plain.type == arrow_type else plain.view(arrow_type)


def split_values(spans: Spans, *, checked: bool) -> tuple[Spans, Positions, Positions]:
    """Elements of multi-valued (or checked) values: ``(elements, the row of each, its checksum or -1)``.

    An element is ``[i32 checksum] i32 length, bytes``. Merge operands may have a comma between them: always before
    Spark 4.2, and from readers without the operator's delimiter. A row is 1 modulo 8 bytes long, so its length never
    starts like a comma.
    """
    head = _LENGTH_BYTES * (2 if checked else 1)
    data, first = spans.copied()
    found: list[tuple[int, int, int, int]] = []
    for row, (start, length) in enumerate(zip((spans.starts - first).tolist(), spans.lengths.tolist(), strict=True)):
        position, end = start, start + length
        while position < end:
            if found and found[-1][2] == row and _is_separator(data, position, end, head):
                position += 1
            body = position + head
            size = int.from_bytes(data[body - _LENGTH_BYTES : body], "little", signed=True)
            if size < 0 or body + size > end:
                raise FormatError("torn", "a list is cut", expected="an element", found=f"byte {position - start}")
            checksum = int.from_bytes(data[position : position + _LENGTH_BYTES], "little") if checked else -1
            found.append((body, size, row, checksum))
            position = body + size
    table = np.array(found, np.int64).reshape(len(found), 4)
    return Spans(spans.view, table[:, 0] + first, table[:, 1].copy()), table[:, 2].copy(), table[:, 3].copy()


def _is_separator(data: bytes, position: int, end: int, head: int) -> bool:
    if data[position : position + 1] != b",":
        return False
    # A row checksum in front of an element may start like a comma, so both readings are tried.
    with_comma = _fits(data, position + 1, end, head)
    without = _fits(data, position, end, head)
    return with_comma or not without


def _fits(data: bytes, position: int, end: int, head: int) -> bool:
    body = position + head
    size = int.from_bytes(data[body - _LENGTH_BYTES : body], "little", signed=True)
    return size >= 0 and body + size <= end


_ATOMIC: dict[str, pa.DataType] = {
    **{name: arrow for name, (_, arrow) in FIXED.items()},
    "boolean": pa.bool_(),
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
_NULL_BRANCH, _VALUE_BRANCH = 0, 1


def avro_rows(
    spans: Spans, schema: StructType, writers: Mapping[int, StructType] | None = None, *, has_id: bool = True
) -> pa.StructArray:
    """State rows in Avro (``stateStore.encodingFormat=avro``, 4.0 and later): version byte, schema id, Avro binary.

    The schema is ``SchemaConverters.toAvroTypeWithDefaults``: a record in column order. Each field is a union ``[null,
    type]``, nullable or not, except void, which has no bytes. In arrays and maps only structs, arrays and maps are
    unions. A key's prefix has no schema id. ``writers`` are value schemas by id; keys never change.
    """
    body = after_version_byte(spans)
    ids = [0] * len(body.starts)
    if has_id:
        rest = body.cut(_ID_BYTES)
        ids = body.view.integers(body.starts, "<i2").tolist()
        body = rest
    data, first = body.copied()
    rows = []
    for start, length, number in zip((body.starts - first).tolist(), body.lengths.tolist(), ids, strict=True):
        reader = _AvroReader(data, start, start + length)
        row = reader.record((writers or {}).get(number, schema))
        left = start + length - reader.position
        if left:
            raise FormatError("foreign", "bytes after an Avro row", expected="the end", found=f"{left} bytes")
        rows.append({name: row.get(name) for name in schema.names})
    try:
        return pa.array(rows, arrow_type(schema))
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError, ValueError) as error:
        raise FormatError("foreign", "not rows of this schema", expected=str(schema.names), found=str(error)) from error


class _AvroReader:
    def __init__(self, data: bytes, position: int, end: int) -> None:
        self._data = data
        self.position = position
        self._end = end

    def record(self, schema: StructType) -> dict[str, Any]:
        return {field.name: None if field.type == _VOID else self._union(field.type) for field in schema.fields}

    def _element(self, kind: DataType) -> Any:
        return self._union(kind) if isinstance(kind, StructType | ArrayType | MapType) else self._value(kind)

    def _union(self, kind: DataType) -> Any:
        branch = self._long()
        if branch not in {_NULL_BRANCH, _VALUE_BRANCH}:
            raise FormatError("foreign", "not a nullable field in Avro", expected="branch 0 or 1", found=str(branch))
        return self._value(kind) if branch == _VALUE_BRANCH else None

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
                raise FormatError("torn", "the list is too long", expected="a count", found=str(count))
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
        raise FormatError("torn", "the number is too long", expected="a varint", found=f"byte {self.position}")

    def _take(self, count: int) -> bytes:
        end = self.position + count
        if count < 0 or end > self._end:
            raise FormatError("torn", "an Avro row is cut", expected=f"{count} bytes", found="the end")
        taken = self._data[self.position : end]
        self.position = end
        return taken
