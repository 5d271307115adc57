"""A file of the output is missing or damaged.

What it finds: a data file that the manifest or table lists is missing or has another size.
Why it matters: rows that were written are lost; readers fail, or leave them out.
How to confirm: `slackwater status STREAM --verify` looks at every file that the output lists.
What to do: restore the files from a backup, or process the batches again: `slackwater plan rebuild STREAM --at
earliest`.
Is the remedy safe: what the rebuild cuts is kept for the undo. The sources must still have the rows; the plan checks
it.
References: docs/decisions/0063-outputs-cut-and-restore.md
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.commands import rebuild_command
from slackwater.core.finding import Finding, Severity
from slackwater.core.snapshot import Snapshot
from slackwater.diagnose.rules.common.facts import and_more
from slackwater.diagnose.rules.common.rule import DAMAGED, Rule


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """A stop for the first damage of an output that shows its batches."""
    damage = snapshot.output.damage
    if not damage or not snapshot.shown:
        return
    worst = damage[0]
    yield RULE.finding(
        f"the output is damaged: {worst.clause}{and_more(damage, 1)}",
        goal="rebuild",
        next=rebuild_command(snapshot, "--at", "earliest"),
        advice="restore the files from a backup, or process the batches that wrote them again",
        where=snapshot.output.location,
        expected=worst.expected or None,
        found=worst.found or None,
    )


RULE = Rule(
    "output-damaged",
    Severity.STOP,
    order=220,
    find=find,
    doc=__doc__,
    risk="loss",
    exit_code=DAMAGED,
    covers=(
        "FSINK-02",
        "FSINK-03",
        "FSINK-06",
    ),
    on_output=True,
)
