"""The checkpoint has only the file metadata, and the output has batches.

What it finds: the checkpoint has a query id and no batch, and the output shows batches, of a checkpoint that is not
recorded.
Why it matters: The query starts with batch 0 under its old id. A sink that knows batches by their numbers, as Delta's
own and the file sink do, skips the new batches silently until their numbers pass those that it has.
How to confirm: `slackwater inspect LOCATION` shows the id and no batch; list the output's log.
What to do: restore `offsets/`, `commits/`, `sources/` and `state/` from a copy of the checkpoint. For a new beginning
give the query a new checkpoint and a new output.
Is the remedy safe: yes; nothing that the output has is changed. To start with only the file `metadata` loses the rows
of the skipped batches; to delete the file too has Delta's own sink write all rows again.
References: Delta Lake documentation, Idempotent table writes in foreachBatch
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.core.units import batch_range
from slackwater.diagnose.checks.common.check import Check


class OnlyId(NamedTuple):
    """The id of the query, and the newest batch of the output."""

    query_id: str
    written: int

    @property
    def named(self) -> str:
        """The batches that would be skipped, in words."""
        return batch_range(0, self.written)


def find(facts: Facts) -> Iterator[OnlyId]:
    """An id without batches next to an output with some. Of a recorded stream the number line says what is missing."""
    checkpoint, written = facts.checkpoint, facts.marks.written
    query_id = checkpoint.report.query_id
    if facts.recorded or checkpoint.offset_ids or checkpoint.commit_ids or query_id is None:
        return
    if written is not None and written >= 0 and facts.snapshot.output.batches_skipped:
        yield OnlyId(query_id, written)


CHECK = Check(
    "SW-LOG-015",
    Severity.STOP,
    find=find,
    doc=__doc__,
    text="the checkpoint has the query id and no batch, and the output has {it.named}: a start counts from 0, and the "
    "output skips the new batches silently",
    risk="skip",
    goal="reset",
    where="{facts.checkpoint.location}",
    expected="batch {it.written} in offsets/",
    found="only the file metadata",
    at_stake="{it.named}",
    advice="restore offsets/, commits/, sources/ and state/ from a copy of the checkpoint, or give the query a new "
    "checkpoint and a new output",
    needs=("sink",),
    explains=("sink-foreign",),
)
