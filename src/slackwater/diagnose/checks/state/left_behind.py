"""State is left under a new query.

What it finds: the checkpoint has neither planned nor committed batches, and `state/` has files.
Why it matters: the query starts with batch 0, which expects empty state. Spark 4.1 and later refuse to start; older
ones overwrite the files one by one, and RocksDB may join tables of both queries.
How to confirm: `slackwater inspect STREAM` shows no batch; list `state/` below the checkpoint.
What to do: restore `offsets/`, `commits/` and `sources/` if they were deleted by mistake; for a new query, use a new
checkpoint directory.
Is the remedy safe: yes; nothing is deleted. To delete only `offsets/` and `commits/`, as Spark's message for some sinks
says, is what leads here.
References: SPARK-54307; Structured Streaming Programming Guide, "Recovering from Failures with Checkpointing"
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check


class Left(NamedTuple):
    """The newest state version of any store, and how many operators have files."""

    version: int
    operators: int


def find(facts: Facts) -> Iterator[Left]:
    """State of a checkpoint without batches."""
    checkpoint = facts.checkpoint
    versions = [held.newest for _, _, _, held in checkpoint.inventory.each() if held.newest]
    if versions and not checkpoint.offset_ids and not checkpoint.commit_ids:
        yield Left(max(versions), len(checkpoint.inventory.stores))


CHECK = Check(
    "SW-STATE-014",
    Severity.STOP,
    find=find,
    doc=__doc__,
    text="the checkpoint has no batch, but state up to version {it.version}: the first batch of a new query expects "
    "empty state",
    risk="wrong",
    goal="reset",
    where="{facts.checkpoint.location}/state",
    expected="no state",
    found="state of {it.operators} operators, up to version {it.version}",
    advice="restore offsets/, commits/ and sources/ from a copy of the checkpoint; for a new query use a new directory",
)
