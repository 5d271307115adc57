"""A plan as a JSON document, and back. The document is the plan: nothing else is needed to carry it out."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from slackwater.errors import UsageError
from slackwater.model.plan import PLAN_SCHEMA, Plan

ORDER = ("build-generation", "replay-batches", "verify-generation", "cut-sink", "switch-generation")
NEEDED = {"build-generation", "verify-generation", "switch-generation"}


HOW_TO_PLAN = "slackwater plan rebuild STREAM --out PLAN"


def render(plan: Plan) -> str:
    """The document, schema first."""
    fields = asdict(plan)
    return json.dumps({"schema": fields.pop("schema"), **fields}, indent=2) + "\n"


def parse(text: str, where: str | Path) -> Plan:
    """The plan in a document. Raises UsageError where it is no plan, or one that this version does not know."""
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - heavy; only apply pays for it

    try:
        document = json.loads(text)
    except ValueError as error:
        raise UsageError("plan-unreadable", f"This is no plan: {error}", where=str(where), hint=HOW_TO_PLAN) from error
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != PLAN_SCHEMA:
        raise UsageError(
            "plan-schema",
            "This is no plan that can be applied here",
            where=str(where),
            expected=PLAN_SCHEMA,
            found="no schema" if schema is None else str(schema),
            hint=HOW_TO_PLAN,
        )
    try:
        plan = TypeAdapter(Plan).validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UsageError(
            "plan-damaged",
            f"The plan was changed or damaged: {place}: {first['msg']}",
            where=str(where),
            hint="plan again",
        ) from error
    _check_whole(plan, where)
    return plan


def _check_whole(plan: Plan, where: str | Path) -> None:
    """A list of actions that builds nothing, or in another order than a plan ever has, was not written by us."""
    kinds = [action.kind for action in plan.actions]
    in_order = [kind for kind in ORDER if kind in kinds]
    if kinds != in_order or not set(kinds) >= NEEDED or plan.stream.count("/") != 1:
        raise UsageError(
            "plan-damaged",
            "The plan was changed or damaged: its actions are not those of a rebuild",
            where=str(where),
            expected=", ".join(ORDER),
            found=", ".join(kinds) or "none",
            hint="plan again",
        )
