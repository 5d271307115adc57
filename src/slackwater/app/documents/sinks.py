"""The document ``slackwater.sinks/1``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from slackwater.model.sink import CatalogueEntry

SCHEMA = "slackwater.sinks/1"


def sinks_document(entries: Sequence[CatalogueEntry]) -> dict[str, Any]:
    """The sinks, each with its traits by name."""
    return {"schema": SCHEMA, "sinks": [_fields(entry) for entry in entries]}


def _fields(entry: CatalogueEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "call": entry.call,
        "output_modes": list(entry.output_modes),
        **asdict(entry.traits),
    }
