"""The log of a file source lacks entries of the newest batch.

What it finds: the newest batch in `offsets/` reads entries of `sources/N` that the log does not have.
Why it matters: only that log names the files of a batch. Spark plans the newest batch again at each start, and fails
with "batch M doesn't exist", where M is the number of the entry and not of a batch.
How to confirm: `slackwater inspect STREAM` shows the first and the last entry of the log.
What to do: `slackwater plan rebuild STREAM` writes a checkpoint with the log from the ledger's copy.
Is the remedy safe: yes; the entries are what Spark wrote. To delete `sources/N` cannot help, as the entries are not
written again, and a new checkpoint reads every file a second time.
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
from slackwater.diagnose.checks.common.source_logs import entries_text, range_of_newest


class Missing(NamedTuple):
    """A source, its missing entries for people, the first of them, the newest batch, and where runs of them end."""

    source: str
    entries: str
    first: int
    batch: int
    ends: tuple[int, ...]


def find(facts: Facts) -> Iterator[Missing]:
    """A source with entries in the range of the newest batch that no file has."""
    for source in facts.sources:
        newest = range_of_newest(facts, source)
        # A compacted entry has the files of all entries before it.
        first = max((newest.start, *(compacted + 1 for compacted in source.compacted)))
        missing = tuple(holes(first, newest.stop - 1, source.entries))
        if missing:
            ends = tuple(number for run in missing for number in (run[0], run[-1]))
            yield Missing(source.name, entries_text(missing), ends[0], facts.checkpoint.planned, ends)


CHECK = Check(
    "SW-FSRC-001",
    Severity.STOP,
    find=find,
    doc=__doc__,
    text="batch {it.batch} reads {it.entries} of sources/{it.source}, which the log does not have: "
    'a start fails with "batch {it.first} doesn\'t exist"',
    risk="stuck",
    goal="rebuild",
    where="{facts.checkpoint.location}/sources/{it.source}",
    expected="{it.entries}",
    found="nothing",
    next=rebuild,
    damage=lambda it: (f"sources/{it.source}/{number}" for number in it.ends),
    advice="restore {facts.checkpoint.location}/sources/{it.source} from a copy of the checkpoint",
)
