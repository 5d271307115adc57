"""All state was deleted.

What it finds: the newest commit names versions of state, and `state/` has none.
Why it matters: the next batch needs this state; Spark fails at every start.
How to confirm: `slackwater inspect STREAM --operators` shows no operator.
What to do: restore `state/` from a copy of the checkpoint; or `slackwater plan rebuild STREAM`, which computes it
again.
Is the remedy safe: yes; the output is not touched. State is not a cache: to delete it in order to free space ends the
query.
References: SPARK-54307; Structured Streaming Programming Guide, "State Store"
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.commands import rebuild


class Deleted(NamedTuple):
    """The newest commit, and of how many operators it names state."""

    batch: int
    operators: int


def find(facts: Facts) -> Iterator[Deleted]:
    """A commit that names state where there is none at all."""
    checkpoint = facts.checkpoint
    named = checkpoint.newest_commit.state_unique_ids if checkpoint.newest_commit is not None else None
    if named and not any(held.newest for _, _, _, held in checkpoint.inventory.each()):
        yield Deleted(checkpoint.committed, len(named))


CHECK = Check(
    "SW-STATE-003",
    Severity.STOP,
    find=find,
    doc=__doc__,
    text="the commit of batch {it.batch} names state of {it.operators} operators, and state/ has none",
    risk="stuck",
    goal="rebuild",
    where="{facts.checkpoint.location}/state",
    expected="state of batch {it.batch}",
    found="nothing",
    next=rebuild,
    advice="restore {facts.checkpoint.location}/state from a copy of the checkpoint",
)
