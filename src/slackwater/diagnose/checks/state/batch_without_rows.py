"""A batch has read none of its rows.

What it finds: the ledger has a committed batch whose sources had new data, and which read no row.
Why it matters: the batch counts as done. A batch function that catches its own errors, or returns early, causes it.
Outputs that skip a batch which they have are not looked at: after a crash they do so rightly.
How to confirm: `slackwater ledger STREAM --batches N..N` shows the range and the rows of the batch.
What to do: let the function raise its errors, then process the batches again: `slackwater plan replay STREAM --from
batch:N`.
Is the remedy safe: the plan shows what is cut out of the output, and keeps it for the undo. An output that cannot be
cut gets the rows of later batches a second time. To start the stream again reads none of these rows.
References: Structured Streaming Programming Guide, "Using Foreach and ForeachBatch"
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.core.records import BatchRecord
from slackwater.core.units import counted
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.commands import replay_from

_DOUBLED = "; later batches that did read their rows are written a second time, as their output cannot be cut"


class Unread(NamedTuple):
    """The first of the batches that read nothing, how many there are, and what a replay does to later ones."""

    batch: int
    batches: int
    doubled: str

    @property
    def counted(self) -> str:
        """How many, in words."""
        return counted(self.batches, "batch", "batches")


def find(facts: Facts) -> Iterator[Unread]:
    """The recorded batches of this generation without rows, though a source has moved."""
    output = facts.snapshot.output
    if output.batches_skipped and not output.skipped_are_read:
        return
    unread = [one.batch_id for one in facts.batches if _read_nothing(one)]
    if unread:
        later = facts.marks.committed - unread[0] + 1 > len(unread) and not output.can_cut
        yield Unread(unread[0], len(unread), _DOUBLED if later else "")


def _read_nothing(batch: BatchRecord) -> bool:
    moved = any(source.start is not None and source.start != source.end for source in batch.sources)
    return moved and not batch.input_rows and not any(source.input_rows for source in batch.sources)


CHECK = Check(
    "SW-STATE-010",
    Severity.WARNING,
    find=find,
    doc=__doc__,
    text="batch {it.batch} had new data and read no row of it ({it.counted} in all): what was not read counts as done",
    risk="loss",
    goal="replay",
    certainty="likely",
    where="batch {it.batch}",
    expected="rows of its range",
    found="0 rows",
    at_stake="the rows of {it.counted}",
    next=lambda facts, it: replay_from(facts, it.batch),
    advice="let the batch function raise its errors first; otherwise the batches are lost again{it.doubled}",
    needs=("history",),
)
