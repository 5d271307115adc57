"""Statistics and partition values of a file, from deltalake's typed values to log strings.

Format: Delta Lake's PROTOCOL.md, sections "Per-file Statistics" and "Partition Value Serialization". Inexact values are
dropped: readers then skip no file by them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from slackwater.sinks.common.changes import unsupported

_JSON_NAMES = {"min": "minValues", "max": "maxValues", "null_count": "nullCount"}
_MS = 1000


def statistics(action: Mapping[str, Any]) -> str:
    rows = action["num_records"].as_py()
    found: dict[str, Any] = {} if rows is None else {"numRecords": rows}
    for column, name in _JSON_NAMES.items():
        values = _plain(action[column]) if column in action else None
        if values is not None:
            found[name] = values
    return json.dumps(found, ensure_ascii=False)


def partition_strings(values: Any, location: str) -> Mapping[str, str | None]:
    """The log's partition values, from an Arrow struct.

    Raises Refused (``swap-unsupported``) for a timestamp: older writers omitted the zone.
    """
    return {name: _partition_string(name, value, location) for name, value in values.as_py().items()}


def _plain(scalar: Any) -> Any:
    if hasattr(scalar.type, "num_fields") and scalar.type.num_fields and scalar.is_valid:
        fields = {name: _plain(scalar[name]) for name in (scalar.type[i].name for i in range(scalar.type.num_fields))}
        return {name: value for name, value in fields.items() if value is not None} or None
    try:
        value = scalar.as_py()
    except (ValueError, OverflowError):
        return None  # A time after the year 9999, which Python has no value for.
    if isinstance(value, datetime):
        precise = "microseconds" if value.microsecond % _MS else "milliseconds"
        return value.replace(tzinfo=None).isoformat(timespec=precise) + ("Z" if value.tzinfo else "")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        number = float(value)
        return number if Decimal(repr(number)) == value else None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int) else None


def _partition_string(name: str, value: Any, location: str) -> str | None:
    if value is None:
        return None
    if isinstance(value, datetime | bytes):
        kind = "timestamp" if isinstance(value, datetime) else "binary"
        raise unsupported(location, "partition columns that are no timestamp and not binary", f"{name}: {kind}")
    if isinstance(value, bool):
        return str(value).lower()
    return format(value, "f") if isinstance(value, Decimal) else str(value)
