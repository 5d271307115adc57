"""An older entry of the log of a file source is missing.

What it finds: an entry of `sources/N` before the newest compacted entry is missing between others. The checkpoint is
not recorded.
Why it matters: Spark starts, as the compacted entry lists the files. Which of them the batch has read is lost, so that
a rebuild or a replay of this batch fails.
How to confirm: list `sources/N` below the checkpoint: Spark removes the oldest entries first.
What to do: nothing for a start. Find out what removes files from the checkpoint, before it removes one that a start
reads.
Is the remedy safe: yes; nothing is changed.
References: Structured Streaming Programming Guide, "Input Sources"
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.core.holes import holes
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.source_logs import entries_text, last_entry


class Old(NamedTuple):
    """A source, and its missing entries for people."""

    source: str
    entries: str


def find(facts: Facts) -> Iterator[Old]:
    """Numbers without a file after the oldest entry and before the newest compacted one."""
    for source in facts.sources:
        if facts.recorded or last_entry(source.end) is None or not source.compacted:
            continue
        gap = tuple(holes(source.entries[0], max(source.compacted) - 1, source.entries))
        if gap:
            yield Old(source.name, entries_text(gap))


CHECK = Check(
    "SW-FSRC-012",
    Severity.WARNING,
    find=find,
    doc=__doc__,
    text="the log sources/{it.source} lacks {it.entries} between others: a start does not read it, but a rebuild or "
    "replay of its batch is not possible",
    risk="none",
    goal="resume",
    where="{facts.checkpoint.location}/sources/{it.source}",
    expected="{it.entries}",
    found="nothing",
    advice="find out what removes files from the checkpoint",
)
