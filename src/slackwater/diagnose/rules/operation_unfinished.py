"""An operation on the stream was interrupted.

What it finds: the ledger has an operation that has not ended, and no process works on it.
Why it matters: the checkpoint or the output may be changed in part. Each step is journaled, so that it can be
finished.
How to confirm: `slackwater ledger STREAM --operations` lists the operation with its status.
What to do: `slackwater apply PLAN --yes` finishes it, `slackwater undo OPERATION --yes` undoes it; of an interrupted
undo only the latter.
Is the remedy safe: yes; what was done already is not done again, and all preconditions are checked before the next
step.
References: docs/decisions/0052-actions-with-inverses.md
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.commands import apply_command, undo_command
from slackwater.core.finding import Finding, Severity
from slackwater.core.records import UNDOING, OperationRecord
from slackwater.core.snapshot import Snapshot
from slackwater.diagnose.rules.common.rule import REFUSED, Rule, When


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """A stop where an operation on the stream has not ended, and no process works on it."""
    yield from unfinished(snapshot.operation, snapshot.holder)


def unfinished(operation: OperationRecord | None, holder: str | None = None) -> Iterator[Finding]:
    """The finding about an operation that has not ended; ``holder`` is the purpose of the lease that is held."""
    if operation is None or holder not in {None, "run"}:
        return
    undo, undoing = undo_command(operation.id), operation.status == UNDOING
    yield RULE.finding(
        f"undoing operation {operation.id} ({operation.goal}) was interrupted; it must be finished first"
        if undoing
        else f"operation {operation.id} ({operation.goal}) was interrupted; it must be finished or undone first",
        next=undo if undoing else apply_command(operation.summary),
        advice=None if undoing else f"or, to go back: {undo}",
    )


RULE = Rule(
    "operation-unfinished",
    Severity.STOP,
    order=101,
    find=find,
    doc=__doc__,
    risk="stuck",
    exit_code=REFUSED,
    when=When.ALWAYS,
    about="operation",
)
