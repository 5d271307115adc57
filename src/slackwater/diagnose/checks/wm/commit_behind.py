"""The newest commit has an older watermark than its batch.

What it finds: the watermark in the newest entry of `commits/` is lower than the one with which the batch was planned.
Spark never writes that: the entry was edited, or written by hand.
Why it matters: the watermark of the next batch is that of the batch before, so that rows are counted that an
uninterrupted run drops as late.
How to confirm: `slackwater inspect STREAM` shows the watermark of each batch.
What to do: `slackwater plan rebuild STREAM`. It uses the recorded watermarks.
Is the remedy safe: yes; the output is not touched.
References: Structured Streaming Programming Guide, "Handling Late Data and Watermarking"
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.core.units import utc_text
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.commands import rebuild
from slackwater.diagnose.checks.common.settings import newest_committed


class Behind(NamedTuple):
    """A batch, the watermark that it was planned with, and the one in its commit."""

    batch: int
    planned: str
    committed: str


def find(facts: Facts) -> Iterator[Behind]:
    """The newest commit, where its watermark is lower than the batch's own."""
    checkpoint = facts.checkpoint
    entry, commit = newest_committed(checkpoint), checkpoint.newest_commit
    if entry is None or commit is None or commit.next_batch_watermark_ms >= entry.watermark_ms:
        return
    after = commit.next_batch_watermark_ms
    yield Behind(checkpoint.committed, utc_text(entry.watermark_ms), utc_text(after) if after else "none")


CHECK = Check(
    "SW-WM-005",
    Severity.WARNING,
    find=find,
    doc=__doc__,
    text="the commit of batch {it.batch} has an older watermark than the batch was planned with: "
    "the next batch would count rows that are late",
    risk="wrong",
    goal="rebuild",
    where="{facts.checkpoint.location}/commits/{it.batch}",
    expected="a watermark of {it.planned} or later",
    found="{it.committed}",
    next=rebuild,
    advice="restore commits/{it.batch} from a copy of the checkpoint",
)
