"""The log of a file source has a gap after its newest compacted entry.

What it finds: entries of `sources/N` are missing between the newest compacted entry, or the beginning, and the newest
batch.
Why it matters: Spark reads the whole log when it starts, and fails with "M.compact doesn't exist".
How to confirm: `slackwater inspect STREAM` shows the first and the last entry of the log.
What to do: `slackwater plan rebuild STREAM` writes a checkpoint with the log from the ledger's copy.
Is the remedy safe: yes; the entries are what Spark wrote. An empty file in the place of the missing one lets Spark
start, and its files are read a second time.
References: Structured Streaming Programming Guide, "Input Sources"
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.core.holes import holes
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.commands import rebuild
from slackwater.diagnose.checks.common.logs import strays_in_sources
from slackwater.diagnose.checks.common.source_logs import entries_text, last_entry, range_of_newest


class Gap(NamedTuple):
    """A source, its missing entries for people, and the entry that is there before them, -1 for none."""

    source: str
    entries: str
    after: int


def find(facts: Facts) -> Iterator[Gap]:
    """Numbers without a file that are neither before a compacted entry nor read by the newest batch."""
    strays = dict(strays_in_sources(facts))
    for source in facts.sources:
        if last_entry(source.end) is None or not source.entries or f"sources/{source.name}" in strays:
            continue
        newest, last = range_of_newest(facts, source), source.entries[-1] - 1
        first = max(source.compacted, default=-1) + 1
        gap = (
            *holes(first, min(newest.start - 1, last), source.entries),
            *holes(max(first, newest.stop), last, source.entries),
        )
        if gap:
            yield Gap(source.name, entries_text(gap), gap[0][0] - 1)


CHECK = Check(
    "SW-FSRC-002",
    Severity.STOP,
    find=find,
    doc=__doc__,
    text="the log sources/{it.source} lacks {it.entries}, after which no compacted entry follows: "
    "a start fails, as Spark reads the whole log",
    risk="stuck",
    goal="rebuild",
    where="{facts.checkpoint.location}/sources/{it.source}",
    expected="{it.entries}, or a later compacted entry",
    found="nothing",
    next=rebuild,
    advice="restore {facts.checkpoint.location}/sources/{it.source} from a copy of the checkpoint",
)
