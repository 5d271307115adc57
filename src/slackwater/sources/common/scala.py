"""Values of Spark's own classes, read through handles of py4j."""

from __future__ import annotations

from typing import Any

_BETWEEN = "\x00"


def scala_map(values: Any) -> dict[str, str]:
    """A Scala map of strings, in one call: its iterator would cost several for each entry."""
    entries = str(values.mkString(_BETWEEN)).split(_BETWEEN)
    # At the first arrow: a value may contain another one.
    return {key: value for key, arrow, value in (entry.partition(" -> ") for entry in entries) if arrow}
