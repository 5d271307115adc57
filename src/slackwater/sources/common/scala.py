"""Values of Spark's classes, read through py4j."""

from __future__ import annotations

from typing import Any

_BETWEEN = "\x00"


def scala_map(values: Any) -> dict[str, str]:
    """Copy the map in one call: its iterator would need several per entry."""
    entries = str(values.mkString(_BETWEEN)).split(_BETWEEN)
    # At the first arrow: a value may contain another one.
    return {key: value for key, arrow, value in (entry.partition(" -> ") for entry in entries) if arrow}
