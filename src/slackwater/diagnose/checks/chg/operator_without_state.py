"""A stateful operator has stopped keeping state.

What it finds: all state of an operator ends at the same older version, while later batches were committed.
Why it matters: the query ran without the operator since then, which Spark before 4.0 accepts silently. With the
operator back, its state lacks the rows of these batches; Spark fails, or counts from old state.
How to confirm: `slackwater inspect STREAM --operators` shows the versions of each operator.
What to do: compare the code with `slackwater check FILE`; for the query with the operator, `slackwater plan rebuild
STREAM` computes its state again. For one without it, plan a reset, which starts with a new checkpoint.
Is the remedy safe: yes; the plans keep the old checkpoint. To copy newer state of another operator into the folder, or
an empty file, gives wrong results.
References: Structured Streaming Programming Guide, "Recovery Semantics after Changes in a Streaming Query"
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.commands import rebuild

_LOST_FILE = 1
"""One missing version may also be one lost file."""


class Stopped(NamedTuple):
    """An operator, the batch at which its state ends, and the newest committed batch."""

    operator: int
    last: int
    committed: int


def find(facts: Facts) -> Iterator[Stopped]:
    """Operators whose stores all end at one version, two or more before that of the newest committed batch."""
    checkpoint = facts.checkpoint
    for operator, partitions in sorted(checkpoint.inventory.stores.items()):
        stores = [held for stores in partitions.values() for held in stores.values()]
        newest = {held.newest for held in stores}
        if len(newest) != 1 or any(held.newest != held.newest_loadable for held in stores):
            continue
        (version,) = newest
        if 0 < version < checkpoint.committed + 1 - _LOST_FILE:
            yield Stopped(operator, version - 1, checkpoint.committed)


CHECK = Check(
    "SW-CHG-007",
    Severity.STOP,
    find=find,
    doc=__doc__,
    text="the state of operator {it.operator} ends at batch {it.last}, and batches up to {it.committed} were committed "
    "without it",
    risk="wrong",
    goal="rebuild",
    certainty="likely",
    where="{facts.checkpoint.location}/state/{it.operator}",
    expected="state of batch {it.committed}",
    found="state up to batch {it.last}",
    next=rebuild,
    advice="compare the code with the one that ran before batch {it.last}: was a stateful operator removed, or state/ "
    "restored from an older copy?",
)
