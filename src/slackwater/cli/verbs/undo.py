"""``slackwater undo``: undoes an operation."""

from __future__ import annotations

from slackwater.cli.common.arguments import (
    Format,
    consent_of,
)
from slackwater.cli.common.console import confirm, err, out, prepare, print_json, say
from slackwater.cli.common.render_plan import ApplyDisplay, outcome_document, undo_texts
from slackwater.core.commands import command
from slackwater.ledger.workspace import open_workspace
from slackwater.operations.apply.undo_operation import find_operation, plan_of_operation, undo_operation

SCHEMA = "slackwater.undo/1"


def undo(
    *, operation: str, yes: bool, stopped: bool, home: str | None, moved: bool, copied: bool, shown_as: Format
) -> int:
    settings = prepare(home, shown_as, logging=True)
    with open_workspace(settings, restore=True) as workspace:
        record = find_operation(workspace, operation)
        plan = plan_of_operation(workspace, record)
        if not yes:
            for text in undo_texts(plan):
                err().print(f"- {text}")
            confirm(plan.stream, "take the operation back")
        with ApplyDisplay(plan) as display:
            consent = consent_of(moved=moved, copied=copied)
            undone = undo_operation(workspace, record, plan, display, consent, stopped=stopped)
    if shown_as is Format.JSON:
        print_json(outcome_document(undone, SCHEMA, "operation"))
    elif undone.repeated:
        out().print(f"nothing to undo: operation {plan.id} has no effect left")
    else:
        for one in plan.members:
            out().print(f"undone: {one.stream} is as it was before operation {plan.id}")
        say(f"next: {command('status', plan.stream)}")
    return 0
