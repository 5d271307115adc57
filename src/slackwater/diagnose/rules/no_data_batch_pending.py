"""A batch without data is pending.

What it finds: the newest commit has a newer watermark than its offsets, so that a running query would plan a batch
without data, which writes what the watermark has closed.
Why it matters: a restart by Spark alone forgets this batch; a run by Slackwater plans it.
How to confirm: `slackwater status STREAM --format json` has its id as `marks.pending_no_data`.
What to do: `slackwater run FILE`.
Is the remedy safe: yes; the output equals that of an uninterrupted run.
References: docs/decisions/0053-the-no-data-batch.md, docs/decisions/0256-when-the-no-data-batch-is-planned.md
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.finding import Finding, Severity
from slackwater.core.snapshot import Snapshot
from slackwater.diagnose.rules.common.rule import Rule


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """The pending no-data batch."""
    batch = snapshot.marks.pending_no_data
    if batch is not None:
        yield RULE.finding(
            f"batch {batch}, without data, writes what the newest watermark has closed; the next start plans it, "
            "unless a source has unread data, which the batch then reads"
        )


RULE = Rule(
    "no-data-batch-pending",
    Severity.INFO,
    order=420,
    find=find,
    doc=__doc__,
    from_plan=True,
)
