"""The document ``slackwater.apply/1``."""

from __future__ import annotations

from typing import Any

from slackwater.app.apply_plan import Applied

SCHEMA = "slackwater.apply/1"


def apply_document(applied: Applied) -> dict[str, Any]:
    """The outcome of an apply."""
    plan = applied.plan
    return {
        "schema": SCHEMA,
        "outcome": applied.outcome,
        "repeated": applied.repeated,
        "plan": plan.id,
        "stream": plan.stream,
        "downstream": [one.stream for one in plan.downstream],
    }
