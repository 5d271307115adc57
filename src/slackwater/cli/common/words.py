"""Formats that several pages and documents share: timestamps, durations, numbers that may be absent, offsets."""

from __future__ import annotations

import json
from typing import Any

from slackwater.core.marks import Marks
from slackwater.core.units import duration_text, iso_text, utc_text


def timestamp(epoch_ms: int | None) -> str:
    """A timestamp in UTC; ``-`` where there is none (Spark's watermark starts at 0)."""
    if not epoch_ms or epoch_ms < 0:
        return "-"
    return utc_text(epoch_ms)


def span(milliseconds: int) -> str:
    """A duration for people."""
    return duration_text(milliseconds)


def number(value: int | None) -> str:
    """A count, or ``-`` where it is not known."""
    return "-" if value is None else f"{value:,}"


def mark(batch: int | None) -> str:
    """A batch id, or ``-`` where there is none."""
    return "-" if batch is None or batch < 0 else str(batch)


def marks_document(marks: Marks, *others: str) -> dict[str, int | None]:
    """The marks that a checkpoint has; ``others`` are the names of further ones."""
    return {name: getattr(marks, name) for name in ("planned", "committed", "state", *others)}


def iso(epoch_ms: int | None) -> str | None:
    """A timestamp as ISO 8601 in UTC; ``None`` if there is none (Spark writes 0 for a watermark not yet set)."""
    if not epoch_ms or epoch_ms < 0:
        return None
    return iso_text(epoch_ms)


def offset_value(text: str | None) -> Any:
    """An offset as JSON if it is JSON, else the string that Spark wrote; ``None`` if there is none."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
