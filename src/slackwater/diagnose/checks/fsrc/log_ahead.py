"""The log of a file source is ahead of the batches.

What it finds: `sources/N` has two or more entries after the end of the newest batch. A crash leaves one at most.
Why it matters: the logs of the batches were taken back, or restored from an older copy, without the log of the source.
The next batch reads all these entries at once, under an id that other rows had before: an output that keeps its
batches skips them silently, and any other output gets them a second time.
How to confirm: compare the last entry of the source with the newest batch in `slackwater inspect STREAM`.
What to do: `slackwater plan rebuild STREAM`. It continues after the newest written batch.
Is the remedy safe: yes; the output is not touched. By hand, offsets, commits and the source's log have to be taken
back together with the output: one of them alone is what this finding is about.
References: Structured Streaming Programming Guide, "Recovery Semantics after Changes in a Streaming Query"
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.commands import rebuild
from slackwater.diagnose.checks.common.source_logs import last_entry

# The source writes its entry before the plan in offsets/, so that a crash in between leaves one entry without a batch.
_LEFT_BY_A_CRASH = 1


class Ahead(NamedTuple):
    """A source, the entry at which the newest batch ends, the newest entry of the log, and the next batch."""

    source: str
    planned: int
    newest: int
    batch: int

    @property
    def unread(self) -> int:
        """How many entries no planned batch reads."""
        return self.newest - self.planned


def find(facts: Facts) -> Iterator[Ahead]:
    """The sources whose log has more entries than a crash explains."""
    if not facts.checkpoint.offset_ids:
        return
    for source in facts.sources:
        last = last_entry(source.end)
        if last is not None and source.entries and source.entries[-1] - last > _LEFT_BY_A_CRASH:
            yield Ahead(source.name, last, source.entries[-1], facts.checkpoint.planned + 1)


CHECK = Check(
    "SW-FSRC-011",
    Severity.WARNING,
    find=find,
    doc=__doc__,
    text="sources/{it.source} has {it.unread} entries after entry {it.planned}, at which the newest batch ends: "
    "batch {it.batch} would read them all, though older batches may have read them",
    risk="duplicate",
    goal="rebuild",
    certainty="likely",
    where="{facts.checkpoint.location}/sources/{it.source}",
    expected="at most entry {it.planned} and one more",
    found="entry {it.newest}",
    at_stake="the files of {it.unread} entries",
    next=rebuild,
    advice="if offsets/ and commits/ were restored from an older copy, restore sources/ and the output from it too",
)
