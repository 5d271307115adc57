"""Checks before the first step of an undo, or of an apply that is continued, all that its steps will need.

A step that was refused in the middle would leave a stream that can go neither on nor back.
"""

from __future__ import annotations

from slackwater.core.commands import undo_command
from slackwater.core.errors import Refused
from slackwater.operations.apply.journal import move_away
from slackwater.operations.apply.operation import Operation
from slackwater.sinks.common.registry import open_each
from slackwater.storage.location import Location


def check_undo(operation: Operation) -> None:
    """Raises Refused where a step of the undo would be refused or fail, or would change what is not the stream's."""
    check_owner(operation)
    inverses = [one.inverse for one in operation.plan.undo if operation.journal.state(one.action) is not None]
    for inverse in inverses:
        inverse.check(operation)
    for inverse in inverses:
        inverse.check_unused(operation)


def check_continued(operation: Operation) -> None:
    """Raises Refused where what an interrupted apply has done is no longer as it left it."""
    if operation.journal.end is not None:
        return
    check_owner(operation)
    for action in operation.plan.actions:
        action.check_continued(operation)


def plan_changed(operation: str, file: Location) -> Refused:
    """The refusal of a plan in an operation's folder that is not the one which the ledger has recorded."""
    return Refused(
        "plan-changed",
        f"The plan in the folder of operation {operation} was changed since the operation was started",
        where=str(file),
        expected="the plan that the ledger has recorded",
        hint="nothing was changed; move the plan away, so that the recorded one is used: "
        f"{move_away(file)}; then: {undo_command(operation)}",
    )


def check_owner(operation: Operation) -> None:
    """Raises Refused (``sink-owned``) where the operation changes an output that another stream owns by now."""
    stream = operation.stream
    if not any(action.changes_output for action in operation.plan.actions):
        return
    for output in open_each(stream.sink):
        known = output.owner()
        if known is not None and known.stream_id != stream.id:
            raise Refused(
                "sink-owned",
                f"Operation {operation.plan.id} changes an output that another stream owns; nothing was changed",
                where=output.location,
                expected=f"stream {stream.full_name} of home {operation.home.location}",
                found=f"stream {known.stream} of home {known.home}",
                hint="apply or undo it in the home that owns the output; if no other stream writes to the output, "
                "restore its owner file from a backup",
            )
