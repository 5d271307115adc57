"""Rows as Spark's ``statestore`` source dumped them into ``case.json``, made comparable with rows read here."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any


def as_multiset(rows: Iterable[Mapping[str, Any]], *, ignore: tuple[str, ...] = ()) -> Counter[str]:
    """Rows without regard to order, in the dump's own way of writing: no nulls, times as text, bytes as base64."""
    return Counter(json.dumps(_comparable(row, ignore), sort_keys=True) for row in rows)


def _comparable(value: Any, ignore: tuple[str, ...]) -> Any:
    if isinstance(value, Mapping):
        return _fields(value, ignore)
    if isinstance(value, (list, tuple)):
        return [_comparable(item, ignore) for item in value]
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{value.microsecond // 1000:03d}Z"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        return float(value)
    return value


def _fields(value: Mapping[str, Any], ignore: tuple[str, ...]) -> dict[str, Any]:
    """A struct. Where a name occurs twice (``count``, ``count_2`` here) the dump has only the last of them."""
    fields: dict[str, Any] = {}
    for name, item in value.items():
        comparable = _comparable(item, ignore)
        if name in ignore or comparable is None:
            continue
        stem = name.removesuffix("_2")
        fields[stem if stem in value else name] = comparable
    return fields
