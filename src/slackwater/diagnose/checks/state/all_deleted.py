"""All state was deleted.

What it finds: `state/` has no state, and the logs show that there was some: the newest commit names versions of state,
or a batch was planned without new data, for its watermark alone, which Spark does for operators with state only.
Why it matters: the next batch needs this state; Spark fails at every start.
How to confirm: `slackwater inspect STREAM --operators` shows no operator. Logs of a query with state that ran no batch
without data do not differ from those of a query without state.
What to do: restore `state/` from a copy of the checkpoint; or `slackwater plan rebuild STREAM`, which computes it
again.
Is the remedy safe: yes; the output is not touched. State is not a cache: to delete it in order to free space ends the
query.
References: SPARK-54307; Structured Streaming Programming Guide, "State Store"
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from slackwater.core.checkpoint import BatchLine
from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.commands import rebuild


class Deleted(NamedTuple):
    """The newest committed batch, and what shows that it had state."""

    batch: int
    shown: str


def find(facts: Facts) -> Iterator[Deleted]:
    """Logs of a query with state where there is none at all."""
    checkpoint = facts.checkpoint
    if any(held.newest for _, _, _, held in checkpoint.inventory.each()):
        return
    named = checkpoint.newest_commit.state_unique_ids if checkpoint.newest_commit is not None else None
    without_data = _batch_without_data(checkpoint.report.batches)
    if named:
        operators = "1 operator" if len(named) == 1 else f"{len(named)} operators"
        yield Deleted(checkpoint.committed, f"the commit of batch {checkpoint.committed} names state of {operators}")
    elif without_data is not None and checkpoint.committed >= without_data:
        shown = f"batch {without_data} was planned without new data, for operators with state"
        yield Deleted(checkpoint.committed, shown)


def _batch_without_data(batches: Sequence[BatchLine]) -> int | None:
    """The newest batch that was planned for its watermark alone (``StateStoreWriter.shouldRunAnotherBatch``)."""
    found: int | None = None
    for before, line in pairwise(batches):
        if not line.sources or line.sources != before.sources:
            continue
        # In real-time mode a query without state has such batches, too, and the watermark rises in few of them.
        if line.watermark_ms == before.watermark_ms:
            return None
        found = line.id
    return found


CHECK = Check(
    "SW-STATE-003",
    Severity.STOP,
    find=find,
    doc=__doc__,
    text="{it.shown}, and state/ has none",
    risk="stuck",
    goal="rebuild",
    where="{facts.checkpoint.location}/state",
    expected="state of batch {it.batch}",
    found="nothing",
    next=rebuild,
    advice="restore {facts.checkpoint.location}/state from a copy of the checkpoint",
)
