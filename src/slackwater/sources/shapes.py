"""Shapes that several kinds of sources are recognised by. Nothing here raises, whatever the input is."""

from __future__ import annotations

import json
from typing import TypeGuard

from slackwater.sources.contract import SourceEntries

_LONG = range(-(2**63), 2**63)
_FIRST_ENTRY = 0


def decoded(offset: str | None) -> object:
    """The JSON value of an offset; ``None`` for no offset, the string itself where it is no JSON, or ``null``."""
    if offset is None:
        return None
    try:
        value: object = json.loads(offset)
    except (ValueError, RecursionError):
        return offset
    return offset if value is None else value


def is_long(value: object) -> TypeGuard[int]:
    """Whether a decoded value is an integer that fits a Java long."""
    return isinstance(value, int) and not isinstance(value, bool) and value in _LONG


def is_index(value: str) -> bool:
    """Whether a string is the decimal number of a partition."""
    return value.isascii() and value.isdigit()


def lists_files(log: SourceEntries) -> bool:
    """Whether a source's own log is that of a file source."""
    return bool(log) and _body(log[max(log)]).startswith('{"path":')


def creation_time(log: SourceEntries) -> str | None:
    """The only line of a rate source's own log: when the source was created, in milliseconds since the epoch."""
    body = _body(log[_FIRST_ENTRY]).strip() if _FIRST_ENTRY in log else ""
    return body if is_index(body) else None


def _body(entry: str) -> str:
    """The lines after the version."""
    return entry.partition("\n")[2]
