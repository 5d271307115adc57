"""``slackwater undo``: takes an operation back."""

from __future__ import annotations

from slackwater.cli.apply import confirm
from slackwater.cli.arguments import (
    Format,
    Parser,
    add_consent,
    add_format,
    add_home,
    add_stopped,
    consent_of,
    string,
)
from slackwater.cli.console import err, out, prepare, print_json


def declare(parser: Parser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "operation", metavar="OPERATION", type=string, help="the operation's id; slackwater ledger STREAM lists them"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask for the stream's name")
    add_stopped(parser)
    add_home(parser)
    add_consent(parser)
    add_format(parser)
    parser.epilog = "Each step is journaled: an interrupted undo is continued by running it again."
    parser.set_defaults(verb=undo)


def undo(
    *, operation: str, yes: bool, stopped: bool, home: str | None, moved: bool, copied: bool, shown_as: Format
) -> int:
    """Show what will be undone, have it confirmed, undo it."""
    from slackwater.app.documents.undo import undo_document  # noqa: PLC0415 - light start
    from slackwater.app.undo_operation import find_operation, plan_of_operation, undo_operation  # noqa: PLC0415
    from slackwater.app.workspace import open_workspace  # noqa: PLC0415
    from slackwater.cli.apply_display import ApplyDisplay  # noqa: PLC0415
    from slackwater.cli.render_plan import undo_texts  # noqa: PLC0415

    settings = prepare(home, shown_as, logging=True)
    with open_workspace(settings, restore=True) as workspace:
        record = find_operation(workspace, operation)
        plan = plan_of_operation(workspace, record)
        if not yes:
            for text in undo_texts(plan):
                err().print(f"- {text}", markup=False)
            confirm(plan.stream, "take the operation back")
        with ApplyDisplay(plan) as display:
            consent = consent_of(moved=moved, copied=copied)
            undone = undo_operation(workspace, record, plan, display, consent, stopped=stopped)
    if shown_as is Format.JSON:
        print_json(undo_document(undone))
    elif undone.repeated:
        out().print(f"nothing to undo: operation {plan.id} has no effect left", markup=False)
    else:
        for one in plan.members:
            out().print(f"undone: {one.stream} is as it was before operation {plan.id}", markup=False)
        err().print(f"next: slackwater status {plan.stream}", markup=False)
    return 0
