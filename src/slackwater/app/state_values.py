"""Arrow rows as plain JSON values: times as ISO 8601, bytes as base64, numbers that JSON cannot hold as strings."""

from __future__ import annotations

import base64
import math
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from slackwater.model.units import EPOCH


def json_rows(table: pa.Table, limit: int | None) -> list[dict[str, Any]]:
    """The first rows of a table, a dictionary each."""
    part = table if limit is None else table.slice(0, limit)
    columns = {name: _values(part.column(name)) for name in part.column_names}
    return [{name: columns[name][index] for name in columns} for index in range(part.num_rows)]


def _values(column: pa.ChunkedArray) -> list[Any]:
    return [json_value(scalar) for chunk in column.chunks for scalar in chunk]


def json_value(scalar: pa.Scalar) -> Any:
    """One value. Times outside of Python's calendar stay numbers."""
    if not scalar.is_valid:
        return None
    kind = scalar.type
    if pa.types.is_struct(kind):
        return {kind.field(index).name: json_value(scalar[index]) for index in range(kind.num_fields)}
    if pa.types.is_map(kind):
        return [{"key": json_value(item[0]), "value": json_value(item[1])} for item in map(_pair, scalar.values)]
    if pa.types.is_list(kind):
        return [json_value(item) for item in scalar.values]
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return _time(scalar)
    return _plain(scalar.as_py())


def _pair(entry: pa.Scalar) -> tuple[pa.Scalar, pa.Scalar]:
    return entry[0], entry[1]


def _time(scalar: pa.Scalar) -> str | int:
    number = int(scalar.value)
    try:
        if pa.types.is_date(scalar.type):
            return (date(1970, 1, 1) + timedelta(days=number)).isoformat()
        timestamp = EPOCH + timedelta(microseconds=number)
    except OverflowError:
        return number
    text = timestamp.replace(tzinfo=None).isoformat(timespec="milliseconds" if number % 1000 == 0 else "microseconds")
    return text + ("Z" if scalar.type.tz else "")


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)
