"""The query has several watermarks.

What it finds: the query's plan has more than one watermark.
Why it matters: Spark keeps only the combined watermark over a restart: rows that an uninterrupted run drops as late
may be counted, and windows may be written later.
How to confirm: `slackwater inspect STREAM --operators` shows the operators; look for several withWatermark in the
pipeline.
What to do: nothing, or give all inputs one watermark.
Is the remedy safe: a changed watermark changes which rows are late; `slackwater check FILE` compares the code with
the state.
References: docs/decisions/0053-the-no-data-batch.md
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.finding import Finding, Severity
from slackwater.core.snapshot import Snapshot
from slackwater.diagnose.rules.common.rule import Rule


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """A warning where the query has more than one watermark; a start needs it before there is any batch."""
    if snapshot.profile is not None and len(snapshot.profile.watermark_delays_ms) > 1:
        yield RULE.finding(
            "the query has several watermarks, of which Spark keeps only the combined one over a restart: rows that an "
            "uninterrupted run drops as late may be counted, and windows may be written later"
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
