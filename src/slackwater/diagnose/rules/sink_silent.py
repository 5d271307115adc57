"""The checkpoint is in order; the sink does not show what it holds.

What it finds: the sink has no mark of its newest batch that could be compared with the checkpoint.
Why it matters: a batch that was interrupted is written again, whether or not the sink has its rows.
How to confirm: `slackwater sinks` shows what each sink guarantees.
What to do: `slackwater run FILE`.
Is the remedy safe: as safe as the sink's guarantee: an at-least-once sink can get the rows of one batch twice.
References: docs/decisions/0120-sinks-that-show-nothing.md
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.commands import run_command
from slackwater.core.finding import Finding, Severity
from slackwater.core.snapshot import Snapshot
from slackwater.diagnose.rules.common.facts import outputs_with_next
from slackwater.diagnose.rules.common.rule import Rule, When


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """A stream in order whose sink shows no batch."""
    marks = snapshot.marks
    if marks.planned >= 0 and marks.written is None and not outputs_with_next(snapshot):
        again = f"; batch {marks.planned} was interrupted and will run again" if marks.next_is_planned else ""
        shown = snapshot.output.unchecked or "this sink does not show what it holds"
        yield RULE.finding(
            f"the checkpoint is in order; {shown}{again}",
            goal="resume",
            next=run_command(snapshot.stream),
        )


RULE = Rule(
    "sink-silent",
    Severity.INFO,
    order=303,
    find=find,
    doc=__doc__,
    when=When.IN_ORDER,
    on_output=True,
)
