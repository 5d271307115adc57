"""The checkpoint lacks batches that had been committed.

What it finds: the ledger has recorded commits that the checkpoint does not have, as after a restore from a backup,
and the sink does not show what it holds.
Why it matters: the batches would run again, and a sink that does not know batch ids gets their rows a second time.
How to confirm: compare `slackwater inspect STREAM` with `slackwater ledger STREAM --batches 0..`.
What to do: `slackwater plan rebuild STREAM`.
Is the remedy safe: yes; the new checkpoint continues after the newest committed batch, and the output is not touched.
References: docs/decisions/0120-sinks-that-show-nothing.md
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.commands import rebuild_command
from slackwater.core.finding import Finding, Severity
from slackwater.core.sink import newest_batch
from slackwater.core.snapshot import Snapshot
from slackwater.core.units import batch_range
from slackwater.diagnose.rules.common.facts import lost_batch
from slackwater.diagnose.rules.common.rule import REFUSED, Rule


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """A stop where commits are recorded that the checkpoint lacks, and no sink mark shows what was written."""
    committed, recorded = snapshot.marks.committed, snapshot.recorded.committed
    if snapshot.marks.written is not None or recorded <= committed or lost_batch(snapshot) is not None:
        return
    ends = f"ends at batch {committed}" if committed >= 0 else "has no committed batch"
    yield RULE.finding(
        f"the checkpoint {ends}, but {batch_range(committed + 1, recorded)} had been committed; a start would write "
        "their rows a second time",
        goal="rebuild",
        next=rebuild_command(snapshot),
        expected=f"batch {recorded} in commits/",
        found=newest_batch(committed),
    )


RULE = Rule(
    "checkpoint-behind",
    Severity.STOP,
    order=212,
    find=find,
    doc=__doc__,
    risk="duplicate",
    exit_code=REFUSED,
    covers=("FSINK-04",),
)
