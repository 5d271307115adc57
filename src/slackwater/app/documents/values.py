"""Values that several documents share."""

from __future__ import annotations

import json
from typing import Any

from slackwater.model.units import iso_text


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
