"""An operation on the stream is in progress.

What it finds: the ledger has an operation that has not ended, and the process that applies or undoes it holds the
lease.
Why it matters: the checkpoint or the output is being changed; a start now would read half of the change.
How to confirm: `slackwater status STREAM` names the process that holds the lease, and since when.
What to do: wait until the operation has ended, then run `slackwater status STREAM` again.
Is the remedy safe: yes; waiting changes nothing.
References: docs/decisions/0041-leases-live-in-the-ledger.md
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.finding import Finding, Severity
from slackwater.core.records import OperationRecord
from slackwater.core.snapshot import Snapshot
from slackwater.diagnose.rules.common.rule import Rule, When


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """A stop while the process of an operation works on the stream."""
    yield from in_progress(snapshot.operation, snapshot.holder)


def in_progress(operation: OperationRecord | None, holder: str | None) -> Iterator[Finding]:
    """The finding about an operation that has not ended; ``holder`` is the purpose of the lease that is held."""
    if operation is not None and holder not in {None, "run"}:
        yield RULE.finding(f"operation {operation.id} ({operation.goal}) is in progress")


RULE = Rule(
    "operation-running",
    Severity.STOP,
    order=100,
    find=find,
    doc=__doc__,
    when=When.ALWAYS,
    about="operation",
)
