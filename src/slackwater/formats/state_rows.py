"""State keys and values as Arrow columns, for all providers and encodings.

HDFS-backed stores keep bare UnsafeRows. RocksDB stores put a version byte before each row, lay keys out to sort, and
can hold Avro instead (``RocksDBStateEncoder``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from slackwater.core.errors import FormatError
from slackwater.core.state import AtomicType, Field, KeyEncoding, StructType
from slackwater.formats.byte_view import ByteView, Positions
from slackwater.formats.unsafe_row import read_rows, whole_rows

_LENGTH_BYTES = 4
_TIME_BYTES = 8
_VERSION_BYTES = 1
_SIGN_BIT = np.uint64(1 << 63)


@dataclass(frozen=True, slots=True)
class Spans:
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


class RowFormat(Protocol):
    """The encoding of a row's columns."""

    def read(self, spans: Spans, schema: StructType) -> pa.StructArray:
        """Raises ``FormatError``."""


class BareRows:
    def read(self, spans: Spans, schema: StructType) -> pa.StructArray:
        return read_rows(whole_rows(spans.view, spans.starts, spans.lengths), schema)


class VersionedRows:
    """UnsafeRows behind a version byte, which is 0."""

    def read(self, spans: Spans, schema: StructType) -> pa.StructArray:
        return BareRows().read(after_version_byte(spans), schema)


def after_version_byte(spans: Spans) -> Spans:
    """Raises ``FormatError`` if the byte is not 0."""
    rest = spans.cut(_VERSION_BYTES)
    versions = spans.view.bytes[spans.starts]
    if versions.any():
        raise FormatError("foreign", "a row of another version", expected="version byte 0", found=str(versions.max()))
    return rest


def read_keys(spans: Spans, schema: StructType, encoding: KeyEncoding, rows: RowFormat) -> pa.StructArray:
    """A RocksDB store's keys. Raises ``FormatError``; ``too-new`` for an unknown encoding."""
    match encoding.kind:
        case "NoPrefix":
            return rows.read(spans, schema)
        case "PrefixKeyScan":
            count = encoding.prefix_columns
            front, back = _split(spans)
            parts = [rows.read(front, StructType(schema.fields[:count]))]
            return _join([*parts, rows.read(back, StructType(schema.fields[count:]))], schema, len(spans.starts))
        case "RangeKeyScan":
            return _read_range_keys(spans, schema, encoding.ordering, rows)
        case "TimestampAsPrefix":
            times, rest = _Times(spans, spans.starts), spans.cut(_TIME_BYTES)
            return _join_time(rows.read(rest, StructType(schema.fields[:-1])), times, schema)
        case "TimestampAsPostfix":
            rest = spans.cut(0, _TIME_BYTES)
            times = _Times(spans, spans.starts + rest.lengths)
            return _join_time(rows.read(rest, StructType(schema.fields[:-1])), times, schema)
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


def _join(parts: Sequence[pa.StructArray], schema: StructType, count: int) -> pa.StructArray:
    columns = [part.field(index) for part in parts for index in range(part.type.num_fields)]
    if not columns:
        return pa.array([{}] * count, pa.struct([]))
    fields = [pa.field(name, column.type) for name, column in zip(schema.unique_names, columns, strict=True)]
    return pa.StructArray.from_arrays(columns, fields=fields)


@dataclass(frozen=True, slots=True)
class _Times:
    """Event times in a key: big-endian with the sign bit turned, so that bytes sort like numbers."""

    spans: Spans
    positions: Positions

    def column(self, field: Field) -> pa.Array:
        if (self.spans.lengths < _TIME_BYTES).any():
            raise FormatError("torn", "a key without its time", expected="8 bytes", found="fewer")
        turned = self.spans.view.read(self.positions, ">u8").astype(np.uint64) ^ _SIGN_BIT
        micros = pa.array(turned.view(np.int64))
        return micros.view(pa.timestamp("us", "UTC")) if field.type == AtomicType("timestamp") else micros


def _join_time(rest: pa.StructArray, times: _Times, schema: StructType) -> pa.StructArray:
    columns = [rest.field(index) for index in range(rest.type.num_fields)] + [times.column(schema.fields[-1])]
    fields = [pa.field(name, column.type) for name, column in zip(schema.unique_names, columns, strict=True)]
    return pa.StructArray.from_arrays(columns, fields=fields)


def _read_range_keys(spans: Spans, schema: StructType, ordering: tuple[int, ...], rows: RowFormat) -> pa.StructArray:
    """Sortable columns: a marker byte (0 negative, 1 positive, 2 null) and the value big-endian."""
    if any(not 0 <= ordinal < len(schema.fields) for ordinal in ordering):
        raise FormatError("foreign", "an ordinal without a column", expected="a column", found=str(ordering))
    front, back = _split(spans)
    others = [index for index in range(len(schema.fields)) if index not in ordering]
    sorted_fields = StructType(tuple(Field(schema.fields[index].name, AtomicType("binary")) for index in ordering))
    first = rows.read(front, sorted_fields)
    columns: dict[int, pa.Array] = {
        ordinal: _read_sortable(first.field(place), schema.fields[ordinal]) for place, ordinal in enumerate(ordering)
    }
    if others:
        rest = rows.read(back, StructType(tuple(schema.fields[index] for index in others)))
        columns |= {ordinal: rest.field(place) for place, ordinal in enumerate(others)}
    ordered = [columns[index] for index in range(len(schema.fields))]
    fields = [pa.field(name, column.type) for name, column in zip(schema.unique_names, ordered, strict=True)]
    return pa.StructArray.from_arrays(ordered, fields=fields)


_SORTABLE = {
    "byte": (">i1", pa.int8()),
    "short": (">i2", pa.int16()),
    "integer": (">i4", pa.int32()),
    "long": (">i8", pa.int64()),
    "float": (">u4", pa.float32()),
    "double": (">u8", pa.float64()),
    "date": (">i4", pa.date32()),
    "timestamp": (">i8", pa.timestamp("us", "UTC")),
    "timestamp_ntz": (">i8", pa.timestamp("us")),
}
_NEGATIVE, _NULL = 0, 2


def _read_sortable(column: pa.Array, field: Field) -> pa.Array:
    name = field.type.name if isinstance(field.type, AtomicType) else ""
    if name == "boolean":
        return pa.array(
            [None if item is None or item[:1] == b"\2" else item[-1:] == b"\1" for item in column.to_pylist()],
            pa.bool_(),
        )
    if name not in _SORTABLE:
        raise FormatError("too-new", "a type that Spark does not sort by", expected="a number", found=str(field.type))
    kind, arrow_type = _SORTABLE[name]
    width = np.dtype(kind).itemsize + 1
    encoded: list[bytes] = [item or b"" for item in column.to_pylist()]
    if any(len(item) not in {width, 1} for item in encoded):
        raise FormatError("torn", "a sorted column of another width", expected=f"{width} bytes", found="other")
    joined = np.frombuffer(b"".join(item.ljust(width, b"\0") for item in encoded), np.uint8).reshape(-1, width)
    values = np.ascontiguousarray(joined[:, 1:]).view(kind)[:, 0]
    if name in {"float", "double"}:
        # The bits of a negative number are all turned, so that the larger sorts first.
        values = np.where(joined[:, 0] == _NEGATIVE, ~values, values).astype(kind.replace(">", "<"))
        values = values.view(kind.replace(">u", "<f"))
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
