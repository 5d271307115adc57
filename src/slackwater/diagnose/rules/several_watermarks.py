"""The query has several watermarks, and those after its newest batch are not recorded.

What it finds: the query's plan has more than one watermark, and the ledger does not have them after the newest
committed batch: an earlier release ran it, or a Spark that does not show them, or it was not run by Slackwater.
Why it matters: Spark keeps only the combined watermark over a restart: rows that an uninterrupted run drops as late
may be counted, and windows may be written later.
How to confirm: `slackwater inspect STREAM --operators` shows the operators; look for several withWatermark in the
pipeline.
What to do: nothing: from the next batch that Slackwater runs they are recorded, and restored at each start. Or give all
inputs one watermark.
Is the remedy safe: a changed watermark changes which rows are late; `slackwater check FILE` compares the code with
the state.
References: docs/decisions/0481-the-watermark-of-each-input.md
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.finding import Finding, Severity
from slackwater.core.snapshot import Snapshot
from slackwater.diagnose.rules.common.rule import Rule


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """A warning where a start after the newest batch would have only the combined watermark."""
    batch = snapshot.marks.committed
    if snapshot.forgets_inputs(batch, snapshot.profile):
        yield RULE.finding(
            f"the query has several watermarks, of which Spark keeps only the combined one over a restart, and those "
            f"after batch {batch} are not recorded: rows that an uninterrupted run drops as late may be counted, and "
            "windows may be written later"
        )


RULE = Rule(
    "several-watermarks",
    Severity.WARNING,
    order=410,
    find=find,
    doc=__doc__,
    risk="wrong",
    about="query",
    from_plan=True,
)
