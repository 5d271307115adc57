"""A batch that the sink skips does not advance the watermark.

What it finds: a query that Slackwater does not run was killed after the sink wrote a batch and before Spark committed
it, and its sink skips the batch without reading a row of it.
Why it matters: the batch's event times are not seen: rows that an uninterrupted run drops as late may be counted.
How to confirm: compare committed and written in `slackwater status STREAM`.
What to do: `slackwater plan resume STREAM` cuts the batch out of the sink and runs it again; where the sink cannot be
cut, `slackwater plan rebuild STREAM --pipeline STREAM.py`.
Is the remedy safe: yes; what is cut is kept for the undo.
References: docs/decisions/0048-batches-the-sink-skipped.md
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.commands import command, rebuild_command
from slackwater.core.finding import Finding, Severity
from slackwater.core.snapshot import Snapshot
from slackwater.diagnose.rules.common.rule import Rule


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """A warning where the next start skips a batch unread. Measured: no row of such a batch is read."""
    if not snapshot.misses_watermark:
        return
    goal, following = (
        ("resume", command("plan", "resume", snapshot.stream.full_name))
        if snapshot.output.can_cut
        else ("rebuild", rebuild_command(snapshot))
    )
    yield RULE.finding(
        f"batch {snapshot.marks.written} will be skipped by the sink, which has it, and does not advance the "
        f"watermark: rows late only by it may be counted; exact instead: {following}",
        goal=goal,
        next=following,
    )


RULE = Rule(
    "watermark-misses-batch",
    Severity.WARNING,
    order=400,
    find=find,
    doc=__doc__,
    risk="wrong",
    from_plan=True,
    covers=("WM-01",),
    on_output=True,
)
