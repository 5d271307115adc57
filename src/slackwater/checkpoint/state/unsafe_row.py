"""UnsafeRow to Arrow, a column of all rows at a time.

A row is ``ceil(n/64)`` words of null bits, n slots of 8 bytes and a variable part; numbers are little-endian. A
variable-length slot holds ``offset << 32 | size``, counted from the row. An array is its length, null bits and elements
of natural size; a map is its key array's size, the key array and the value array (``UnsafeRow``, ``UnsafeArrayData``,
``UnsafeMapData``).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from slackwater.checkpoint.state.records import ByteView, Flags, Positions
from slackwater.core.errors import FormatError
from slackwater.core.state import ArrayType, AtomicType, DataType, DecimalType, MapType, StructType

_WORD = 8
# `Decimal.MAX_LONG_DIGITS`: up to so many digits the unscaled value is in the slot itself.
_LONG_DIGITS = 18
_BIG_DECIMAL_BYTES = 16
_DEEPEST = 64

FIXED: dict[str, tuple[str, pa.DataType]] = {
    "byte": ("<i1", pa.int8()),
    "short": ("<i2", pa.int16()),
    "integer": ("<i4", pa.int32()),
    "long": ("<i8", pa.int64()),
    "float": ("<f4", pa.float32()),
    "double": ("<f8", pa.float64()),
    "date": ("<i4", pa.date32()),
    "timestamp": ("<i8", pa.timestamp("us", "UTC")),
    "timestamp_ntz": ("<i8", pa.timestamp("us")),
}
"""Types of a fixed width: how a row has them, and Arrow's type."""
_TEXT = ("char(", "varchar(", "string collate")


@dataclass(frozen=True, slots=True)
class Rows:
    """Positions of rows, arrays or maps. Offsets inside count from ``starts``; nothing passes ``ends``."""

    view: ByteView
    starts: Positions
    ends: Positions
    valid: Flags

    def __len__(self) -> int:
        return len(self.starts)


class _Slots(NamedTuple):
    """A column's values in the containers ``rows``; ``valid`` is false for a null."""

    rows: Rows
    positions: Positions
    valid: Flags


def whole_rows(view: ByteView, starts: Positions, lengths: Positions) -> Rows:
    """Rows, none of them null. Raises ``FormatError`` if a row leads out of the bytes."""
    ends = starts + lengths
    view.require(starts, ends, view.length, "a row")
    return Rows(view, starts, ends, np.ones(len(starts), np.bool_))


def read_rows(rows: Rows, schema: StructType, depth: int = 0) -> pa.StructArray:
    if depth > _DEEPEST:
        raise FormatError("foreign", "types nested too deep", expected=f"{_DEEPEST} levels", found="more")
    count = len(schema.fields)
    null_bytes = -(-count // 64) * _WORD
    first_slot = rows.starts + null_bytes
    fixed_end = first_slot + count * _WORD
    # A null row has no bytes of its own; its slots are read from wherever it would start and then masked.
    rows.view.require(rows.starts, np.where(rows.valid, fixed_end, rows.starts), rows.ends, "a row")
    columns = []
    null_bits = np.zeros(0, np.uint64)
    for index, field in enumerate(schema.fields):
        if index & 63 == 0:
            null_bits = rows.view.read(_masked(rows, rows.starts + (index >> 6) * _WORD), "<u8").astype(np.uint64)
        present = rows.valid
        if null_bits.any():
            present = rows.valid & ((null_bits >> np.uint64(index & 63)) & np.uint64(1) == 0)
        slots = _Slots(rows, _masked(rows, first_slot + index * _WORD), present)
        columns.append(read_values(slots, field.type, depth))
    mask = None if rows.valid.all() else pa.array(~rows.valid)
    if not columns:
        # Arrow takes the length of a struct from its columns; a struct without any needs it spelt out.
        empty: pa.StructArray = pa.array([{} if valid else None for valid in rows.valid.tolist()], pa.struct([]))
        return empty
    fields = [pa.field(name, column.type) for name, column in zip(schema.unique_names, columns, strict=True)]
    return pa.StructArray.from_arrays(columns, fields=fields, mask=mask)


def _masked(rows: Rows, positions: Positions) -> Positions:
    """Null rows have no positions, and get harmless positions."""
    return positions if rows.valid.all() else np.where(rows.valid, positions, 0)


def read_values(slots: _Slots, kind: DataType, depth: int) -> pa.Array:
    match kind:
        case AtomicType(name):
            return _read_atomic(slots, name)
        case DecimalType(precision, scale):
            return _read_decimal(slots, precision, scale)
        case StructType():
            return read_rows(_pieces(slots), kind, depth + 1)
        case ArrayType(element):
            arrays = _pieces(slots)
            offsets, values = _read_elements(arrays, element, depth + 1)
            mask = None if arrays.valid.all() else pa.array(~arrays.valid)
            return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, mask=mask)
        case MapType():
            return _read_map(_pieces(slots), kind, depth + 1)


def _read_atomic(slots: _Slots, name: str) -> pa.Array:
    if name in FIXED:
        return _read_fixed(slots, *FIXED[name])
    match name:
        case "boolean":
            return pa.array(slots.rows.view.read(slots.positions, "<u1") != 0, mask=~slots.valid)
        case "void":
            return pa.nulls(len(slots.positions))
        case "binary" | "variant":
            return read_bytes(_pieces(slots)).cast(pa.binary())
        case "interval":
            return _read_calendar_interval(slots)
    if name == "string" or name.startswith(_TEXT):
        return _read_text(slots)
    if name.startswith("interval"):
        # Year-month intervals are months in 32 bits, day-time ones microseconds in 64.
        in_months = "year" in name or "month" in name
        return _read_fixed(slots, *(("<i4", pa.int32()) if in_months else ("<i8", pa.duration("us"))))
    if name.startswith("time"):
        return _read_fixed(slots, "<i8", pa.time64("ns"))
    raise FormatError("too-new", "a type that is not known", expected="a type of Spark 3.5 to 4.3", found=name)


def _read_fixed(slots: _Slots, kind: str, arrow_type: pa.DataType) -> pa.Array:
    values = slots.rows.view.read(slots.positions, kind)
    # Spark and Arrow have the same units and the same epoch for dates and timestamps, so the integers are not
    # converted.
    plain = pa.array(values, mask=None if slots.valid.all() else ~slots.valid)
    return plain if plain.type == arrow_type else plain.view(arrow_type)


def _read_calendar_interval(slots: _Slots) -> pa.Array:
    pieces = _pieces(slots)
    view, at = pieces.view, np.where(pieces.valid, pieces.starts, 0)
    view.require(at, np.where(pieces.valid, at + 16, at), view.length, "an interval")
    # `UnsafeRow.getInterval`: months and days of 32 bits each, then microseconds of 64.
    parts = zip(view.integers(at, "<i4").tolist(), view.integers(at + 4, "<i4").tolist(), strict=True)
    micros = view.integers(at + 8).tolist()
    values = [
        (months, days, micro * 1000) if valid else None
        for (months, days), micro, valid in zip(parts, micros, pieces.valid.tolist(), strict=True)
    ]
    try:
        return pa.array(values, pa.month_day_nano_interval())
    except OverflowError as error:
        # Arrow counts nanoseconds where Spark counts microseconds.
        raise FormatError(
            "foreign", "an interval too long for Arrow", expected="less than 292 years", found=str(error)
        ) from error


def _pieces(slots: _Slots) -> Rows:
    words = slots.rows.view.integers(slots.positions)
    starts = np.where(slots.valid, slots.rows.starts + (words >> 32), slots.rows.starts)
    ends = np.where(slots.valid, starts + (words & 0xFFFFFFFF), starts)
    limits = np.where(slots.valid, slots.rows.ends, starts)
    slots.rows.view.require(starts, ends, limits, "a value")
    return Rows(slots.rows.view, starts, ends, slots.valid)


def read_bytes(pieces: Rows) -> pa.Array:
    """The pieces' bytes, copied together by Arrow.

    Pieces and gaps are alternating elements of an array over the buffer; that needs ascending addresses, as rows of a
    file have.
    """
    if len(pieces) and (np.diff(pieces.starts) < 0).any():
        order = np.argsort(pieces.starts, kind="stable")
        rows = Rows(pieces.view, pieces.starts[order], pieces.ends[order], pieces.valid[order])
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return read_bytes(rows).take(pa.array(back))
    if len(pieces) and (pieces.starts[1:] < pieces.ends[:-1]).any():
        # One piece belongs to several rows, as the key of a list does.
        spans = zip(pieces.starts.tolist(), pieces.ends.tolist(), pieces.valid.tolist(), strict=True)
        return pa.array(
            [pieces.view.slice(start, end) if valid else None for start, end, valid in spans], pa.large_binary()
        )
    bounds = np.zeros(2 * len(pieces) + 1, np.int64)
    bounds[0:-1:2], bounds[1::2] = pieces.starts, pieces.ends
    bounds[-1] = pieces.ends[-1] if len(pieces) else 0
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(pieces.view.bytes)]
    both = pa.Array.from_buffers(pa.large_binary(), 2 * len(pieces), buffers)
    every_second = pa.array(np.arange(0, 2 * len(pieces), 2), mask=None if pieces.valid.all() else ~pieces.valid)
    return both.take(every_second)


def _read_text(slots: _Slots) -> pa.Array:
    raw = read_bytes(_pieces(slots))
    try:
        return raw.cast(pa.string())
    except pa.ArrowInvalid as error:
        raise FormatError("foreign", "a string is not UTF-8", expected="UTF-8", found=str(error)) from error


def _read_decimal(slots: _Slots, precision: int, scale: int) -> pa.Array:
    words = np.zeros((len(slots.positions), 2), np.int64)
    if precision <= _LONG_DIGITS:
        words[:, 0] = slots.rows.view.integers(slots.positions)
        words[:, 1] = words[:, 0] >> 63
        valid = slots.valid
    else:
        pieces = _pieces(slots)
        words = _big_integers(pieces)
        valid = pieces.valid
    buffers = [pa.array(valid).buffers()[1], pa.py_buffer(words)]
    decimals = pa.Array.from_buffers(pa.decimal128(precision, scale), len(words), buffers)
    try:
        # `from_buffers` takes any bits: a value with more digits than its type would be shown as a sound one.
        decimals.validate(full=True)
    except pa.ArrowInvalid as error:
        raise FormatError(
            "foreign", "a decimal has too many digits", expected=f"{precision} digits", found=str(error)
        ) from error
    return decimals


def _big_integers(pieces: Rows) -> npt.NDArray[np.int64]:
    """Shortest big-endian two's complement, widened to 16 bytes little-endian."""
    sizes = np.where(pieces.valid, pieces.ends - pieces.starts, 0)
    if (sizes > _BIG_DECIMAL_BYTES).any() or (pieces.valid & (sizes == 0)).any():
        raise FormatError("foreign", "not a decimal", expected="1 to 16 bytes", found=f"{int(sizes.max())} bytes")
    first = pieces.view.integers(np.where(pieces.valid, pieces.starts, 0), "<i1")
    wide = np.repeat(np.where(first < 0, 255, 0).astype(np.uint8)[:, None], _BIG_DECIMAL_BYTES, axis=1)
    for place in range(_BIG_DECIMAL_BYTES):
        there = sizes > place
        at = np.where(there, pieces.ends - 1 - place, 0)
        wide[:, place] = np.where(there, pieces.view.bytes[at], wide[:, place])
    return np.ascontiguousarray(wide).view(np.int64).reshape(len(pieces), 2)


def _element_width(kind: DataType) -> int:
    match kind:
        case AtomicType("boolean" | "byte"):
            return 1
        case AtomicType("short"):
            return 2
        case AtomicType("integer" | "float" | "date"):
            return 4
        case AtomicType(name) if name.startswith("interval") and ("year" in name or "month" in name):
            return 4
        case _:
            return _WORD


def _read_elements(arrays: Rows, element: DataType, depth: int) -> tuple[Positions, pa.Array]:
    view, at = arrays.view, np.where(arrays.valid, arrays.starts, 0)
    view.require(at, np.where(arrays.valid, at + _WORD, at), np.where(arrays.valid, arrays.ends, at), "an array")
    counts = np.where(arrays.valid, view.integers(at), 0)
    width = _element_width(element)
    # Each element takes at least one byte; a larger count is damage, and would set the size of the arrays below.
    if ((counts < 0) | (counts > np.maximum(arrays.ends - arrays.starts, 0))).any():
        raise FormatError("torn", "an array is longer than its bytes", expected="a count", found=str(int(counts.max())))
    null_bytes = (counts + 63) // 64 * _WORD
    first = at + _WORD + null_bytes
    view.require(first, first + counts * width, np.where(arrays.valid, arrays.ends, first), "an array")
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    owner = np.repeat(np.arange(len(counts)), counts)
    place = np.arange(int(offsets[-1])) - offsets[:-1][owner]
    nulls = view.integers(at[owner] + _WORD + (place >> 6) * _WORD, "<u8").astype(np.uint64)
    present = (nulls >> (place & 63).astype(np.uint64)) & np.uint64(1) == 0
    inside = Rows(view, arrays.starts[owner], arrays.ends[owner], np.ones(len(owner), np.bool_))
    return offsets, read_values(_Slots(inside, first[owner] + place * width, present), element, depth)


def _read_map(maps: Rows, kind: MapType, depth: int) -> pa.Array:
    view, at = maps.view, np.where(maps.valid, maps.starts, 0)
    view.require(at, np.where(maps.valid, at + _WORD, at), np.where(maps.valid, maps.ends, at), "a map")
    key_start = np.where(maps.valid, at + _WORD, maps.starts)
    key_end = np.where(maps.valid, key_start + view.integers(at), key_start)
    view.require(key_start, key_end, np.where(maps.valid, maps.ends, key_start), "a map")
    offsets, keys = _read_elements(Rows(view, key_start, key_end, maps.valid), kind.key, depth)
    value_offsets, values = _read_elements(Rows(view, key_end, maps.ends, maps.valid), kind.value, depth)
    if not np.array_equal(offsets, value_offsets):
        raise FormatError("torn", "a map has other counts of keys and values", expected="equal", found="different")
    if keys.null_count:
        raise FormatError("foreign", "a map has a null key", expected="keys", found="null")
    # A null offset is how this constructor marks a null map.
    mask = None if maps.valid.all() else np.append(~maps.valid, False)
    return pa.MapArray.from_arrays(pa.array(offsets.astype(np.int32), mask=mask), keys, values)
