"""Shapes for recognising sources. Never raises."""

from __future__ import annotations

import json
import re
from typing import Literal, TypeAlias, TypeGuard

from slackwater.formats.text_log import LEADING
from slackwater.sources.common.contract import SourceEntries

_LONG = range(-(2**63), 2**63)
_INDEX = re.compile("0|[1-9][0-9]{0,18}")
_FIRST_ENTRY = 0
_KAFKA_VERSION = f"{LEADING}v"
LogShape: TypeAlias = Literal["files", "kafka", "rate", "none"]


def decoded(offset: str | None) -> object:
    """The JSON value; ``None`` for no offset; the string itself if it is not JSON or is ``null``."""
    if offset is None:
        return None
    try:
        value: object = json.loads(offset)
    except (ValueError, RecursionError):
        return offset
    return offset if value is None else value


def is_long(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value in _LONG


def is_index(value: str) -> bool:
    return _INDEX.fullmatch(value) is not None


def may_be_initial_offsets(entry: str) -> bool:
    """Return whether an entry may be Kafka's, even damaged: other connectors write different JSON."""
    version, _, body = entry.partition("\n")
    if not version.startswith(LEADING):
        return False
    value = decoded(body) if version.startswith(_KAFKA_VERSION) else body
    return isinstance(value, str) or (isinstance(value, dict) and all(isinstance(one, dict) for one in value.values()))


def log_shape(log: SourceEntries) -> LogShape:
    """The shape of the log's newest entry; "none" without a recognised entry."""
    if not log:
        return "none"
    newest = max(log)
    version, _, body = log[newest].partition("\n")
    if version.startswith(_KAFKA_VERSION):
        return "kafka" if newest == _FIRST_ENTRY and may_be_initial_offsets(log[newest]) else "none"
    if body.startswith('{"path":'):
        return "files"
    return "rate" if newest == _FIRST_ENTRY and is_index(body.strip()) else "none"
