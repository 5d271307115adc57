"""The sink has the next batch, and its commit is missing.

What it finds: a run was killed after the sink wrote the batch and before Spark committed it; the batch is planned
with the range that was recorded.
Why it matters: it does not; the batch runs again with its planned range, and the sink skips it.
How to confirm: compare committed and written in `slackwater status STREAM`.
What to do: `slackwater run FILE`.
Is the remedy safe: yes; the sink skips a batch that it has.
References: docs/decisions/0255-a-batch-that-the-sink-has.md
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.commands import run_command
from slackwater.core.finding import Finding, Severity
from slackwater.core.snapshot import Snapshot
from slackwater.diagnose.rules.common.facts import outputs_with_next
from slackwater.diagnose.rules.common.rule import Rule, When


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """The batch that all outputs have and Spark has not committed."""
    having, following = outputs_with_next(snapshot), snapshot.marks.next_batch
    if snapshot.marks.planned < 0 or len(having) < len(snapshot.outputs):
        return
    completed = snapshot.completed_batch is not None
    then = "the next run completes it without writing it again" if completed else "it will run again and be skipped"
    yield RULE.finding(
        f"clean: the sink has batch {following}, its commit is missing; {then}",
        goal="resume",
        next=run_command(snapshot.stream),
    )


RULE = Rule(
    "commit-missing",
    Severity.INFO,
    order=302,
    find=find,
    doc=__doc__,
    when=When.IN_ORDER,
    covers=("LOG-08",),
    on_output=True,
)
