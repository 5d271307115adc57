"""Two entries of a file source's log list different files for the same number.

What it finds: an older entry of `sources/N` lists other files, or other times, than the newest compacted entry has for
it. Compaction copies every line, so that one of the two was edited, or is a copy of another entry.
Why it matters: Spark takes the files of the newest compacted entry for read. A file that it lacks is read a second
time, and one that was never read, but is listed, is never read. The older entry is read by a rollback only.
How to confirm: compare the lines of the two files that have the same `batchId`.
What to do: restore the entry that is wrong from a copy of the checkpoint: the older one shows what Spark had written
when it read the files.
Is the remedy safe: yes; both files are only compared. Keep a copy of the entry that is replaced.
References: docs/decisions/0590-damage-without-checksums.md
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.core.units import counted
from slackwater.diagnose.checks.common.check import Check


class Differ(NamedTuple):
    """A source, the newest of its entries that differ, the newest compacted one, and how many differ."""

    path: str
    compacted: str
    entries: str


def find(facts: Facts) -> Iterator[Differ]:
    """The sources whose reader has found such entries."""
    for source in facts.sources:
        if source.log is not None and source.log.differing:
            path = source.log.differing[0]
            newest = f"{path.rpartition('/')[0]}/{max(source.compacted)}.compact"
            count = len(source.log.differing)
            yield Differ(path, newest, counted(count, "older entry", "older entries"))


CHECK = Check(
    "SW-FSRC-013",
    Severity.WARNING,
    find=find,
    doc=__doc__,
    text="{it.path} lists other files than {it.compacted} has for it ({it.entries} in all): one of them was edited or "
    "copied, and files may be read twice or never",
    risk="wrong",
    goal="rebuild",
    certainty="likely",
    where="{facts.checkpoint.location}/{it.path}",
    expected="the lines of {it.compacted}",
    found="other files, times or numbers",
    advice="compare both with a copy of the checkpoint, and restore the one that is wrong",
)
