"""Refuses to take rows of others out of an output, unless the user says that they may go."""

from __future__ import annotations

from slackwater.core.errors import Refused
from slackwater.core.sink import Others, others_of
from slackwater.operations.plan.plan import Plan


def check_consent(plan: Plan, command: str) -> None:
    """Raises Refused where a stage takes out what others have written; ``command`` applies the plan all the same."""
    for one in plan.members:
        found = others_in(one)
        if found.any:
            name = plan.stream.rpartition("/")[2]
            raise refused(one.stream, found, f"if they may go: {command} --discard-others {name}")


def others_in(plan: Plan) -> Others:
    """What the plan of one stream takes out of its output although the stream did not write it."""
    changes = [action.change for action in plan.actions if action.change is not None]
    return others_of(changes[0]) if changes else Others()


def refused(stream: str, found: Others, hint: str) -> Refused:
    """The refusal, with what would go."""
    whose = "that others have written" if found.sure else "of which it is unknown whether others have written them"
    return Refused(
        "rows-of-others",
        f"The operation would take rows out of the output {whose}",
        where=f"stream {stream}",
        expected="rows of the stream",
        found=found.text,
        hint=hint,
    )
