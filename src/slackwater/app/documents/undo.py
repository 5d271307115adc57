"""The document ``slackwater.undo/1``."""

from __future__ import annotations

from typing import Any

from slackwater.app.undo_operation import Undone

SCHEMA = "slackwater.undo/1"


def undo_document(undone: Undone) -> dict[str, Any]:
    """The outcome of an undo."""
    plan = undone.plan
    return {
        "schema": SCHEMA,
        "outcome": undone.outcome,
        "repeated": undone.repeated,
        "operation": plan.id,
        "stream": plan.stream,
        "downstream": [one.stream for one in plan.downstream],
    }
