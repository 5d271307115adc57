"""The sink lacks batches that the checkpoint has committed.

What it finds: the newest batch of the sink, or of one of several outputs, is older than the newest committed batch:
the output was emptied, restored from an older copy, or cut.
Why it matters: Spark would continue after them, and their rows would be missing.
How to confirm: compare committed and written in `slackwater status STREAM`.
What to do: `slackwater plan rebuild STREAM`. It continues after the newest batch that all outputs have. Where the sink
shows no batch at all, put the output back if it was moved or deleted; without it `slackwater plan rebuild STREAM --at
earliest` processes everything again.
Is the remedy safe: yes; the missing batches are processed again, and what the sink has is kept.
References: docs/decisions/0050-one-snapshot-one-number-line.md, docs/decisions/0150-several-outputs-and-audits.md
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.commands import rebuild_command
from slackwater.core.finding import Finding, Severity
from slackwater.core.snapshot import Snapshot
from slackwater.core.units import batch_range
from slackwater.diagnose.rules.common.facts import location_of, range_differs, written
from slackwater.diagnose.rules.common.rule import REFUSED, Rule


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """A stop where an output lacks committed batches, unless the newest output has a worse finding."""
    seen = written(snapshot)
    if seen is None or seen.is_ahead or seen.oldest >= seen.following - 1:
        return
    # An output that has the planned batch with another range has a finding of its own: range-changed.
    if seen.newest == seen.following and range_differs(snapshot):
        return
    emptied = seen.oldest < 0 and not snapshot.output.members
    yield RULE.finding(
        f"the sink lacks {batch_range(seen.oldest + 1, seen.following - 1)}, which the checkpoint has committed; a "
        "start would leave their rows out",
        goal="rebuild",
        next=rebuild_command(snapshot, *(("--at", "earliest") if emptied else ())),
        advice=f"if the output was moved or deleted, put it back at {snapshot.output.location} first"
        if emptied
        else None,
        where=location_of(snapshot, seen.oldest) if snapshot.output.members else None,
        expected=f"written at least {seen.following - 1}",
        found=f"written {seen.oldest}",
    )


RULE = Rule(
    "sink-behind",
    Severity.STOP,
    order=233,
    find=find,
    doc=__doc__,
    risk="loss",
    exit_code=REFUSED,
    covers=("FSINK-01", "FSINK-05", "FSINK-08", "MODE-07"),
    on_output=True,
)
