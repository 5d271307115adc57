"""More than one planned batch is not committed: a start runs only the newest of them.

What it finds: two or more of the newest entries of `offsets/` have no entry in `commits/`, and the output is not
known to have their rows.
Why it matters: Spark writes a warning to its log, runs only the newest planned batch, and never runs those before it.
What the sink does not have of them is lost silently. `slackwater run FILE` refuses to start.
How to confirm: `slackwater inspect STREAM` lists the entries of both logs; compare the output with the ranges of the
batches.
What to do: `slackwater plan rebuild STREAM` continues after the newest batch that the output shows. Without a ledger,
name the output with `slackwater doctor LOCATION --sink URI`; if the output has all batches but the newest, start the
query.
Is the remedy safe: yes; the ids and ranges of the batches stay. The naive remedy, a restart, loses every batch that
the sink missed.
References: Structured Streaming Programming Guide, Recovering from Failures with Checkpointing
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.core.sink import newest_batch
from slackwater.core.units import batch_range
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.commands import rebuild


class Skipped(NamedTuple):
    """The batches that would never run, and the one that would."""

    batches: tuple[int, ...]
    newest: int
    committed: int

    @property
    def named(self) -> str:
        """The batches, in words."""
        return batch_range(self.batches[0], self.batches[-1])

    @property
    def found(self) -> str:
        """The newest committed batch, in words."""
        return newest_batch(self.committed)


def find(facts: Facts) -> Iterator[Skipped]:
    """Planned batches before the newest one that neither the checkpoint nor the output nor the ledger shows as done."""
    checkpoint, snapshot = facts.checkpoint, facts.snapshot
    entry = checkpoint.newest_offset
    if checkpoint.committed > checkpoint.planned or (entry is not None and entry.metadata is None):
        # A continuous query restarts after its newest commit, and runs all later epochs.
        return
    # The output has a batch that it shows. One that lacks committed batches has a finding of its own: sink-behind.
    done = max(min(snapshot.shown, default=-1), snapshot.recorded.committed, checkpoint.committed)
    batches = tuple(batch for batch in checkpoint.offset_ids[:-1] if batch > done)
    if batches and min(snapshot.shown, default=checkpoint.committed) >= checkpoint.committed:
        yield Skipped(batches, checkpoint.planned, checkpoint.committed)


CHECK = Check(
    "SW-LOG-009",
    Severity.STOP,
    find=find,
    doc=__doc__,
    text="{it.named} are planned and not committed, and a start runs batch {it.newest} only: what the output lacks of "
    "the others is lost",
    risk="loss",
    goal="rebuild",
    where="{facts.checkpoint.location}/commits",
    expected="batch {it.newest} or the one before as the newest entry",
    found="{it.found}",
    at_stake="{it.named}",
    next=rebuild,
    advice="do not start the query before the output was compared with {it.named}: if it has their rows, a start is "
    "safe; if not, process their ranges, which the entries of offsets/ bound, in a batch job first",
    explains=("sink-behind",),
    refuses_start=True,
)
