"""Checkpoint and sink agree.

What it finds: the newest batch of the sink is the newest committed batch, and its state can be loaded.
Why it matters: it does not; a batch that was interrupted runs again with its planned range.
How to confirm: `slackwater status STREAM --verify` reads every file that the marks depend on.
What to do: `slackwater run FILE`.
Is the remedy safe: yes.
References: docs/decisions/0050-one-snapshot-one-number-line.md
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.commands import run_command
from slackwater.core.finding import Finding, Severity
from slackwater.core.snapshot import Snapshot
from slackwater.diagnose.rules.common.facts import outputs_with_next
from slackwater.diagnose.rules.common.rule import Rule, When


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """A stream in order whose sink shows the newest committed batch."""
    marks = snapshot.marks
    if marks.planned >= 0 and marks.written is not None and not outputs_with_next(snapshot):
        interrupted = f"batch {marks.planned} was interrupted and will run again"
        yield RULE.finding(
            f"clean: {interrupted if marks.next_is_planned else 'checkpoint and sink agree'}",
            goal="resume",
            next=run_command(snapshot.stream),
        )


RULE = Rule(
    "clean",
    Severity.INFO,
    order=304,
    find=find,
    doc=__doc__,
    when=When.IN_ORDER,
    on_output=True,
)
