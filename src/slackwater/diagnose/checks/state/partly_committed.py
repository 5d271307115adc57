"""Only some partitions have committed their state.

What it finds: the newest batch is committed, some partitions of an operator have its state, and others end at the batch
before.
Why it matters: Spark fails to load the missing version at every start. A batch function that does not read its whole
DataFrame causes it, such as `limit(1)` or a branch that leaves the rows out; so does one lost file for each partition.
How to confirm: `slackwater inspect STREAM --operators` shows the versions of each store.
What to do: correct the batch function first, if there is one; then `slackwater plan rebuild STREAM`.
Is the remedy safe: yes; the output is not touched. With the function as it is the same batch fails again. An empty file
in the place of the missing one lets the keys of its partition start from nothing.
References: SPARK-52008
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.commands import rebuild


class Partly(NamedTuple):
    """An operator, the committed batch, the first partition without its state, and how many there are of how many."""

    operator: int
    batch: int
    first: int
    missing: int
    partitions: int


def find(facts: Facts) -> Iterator[Partly]:
    """Operators with partitions that end one version before the others."""
    version = facts.checkpoint.committed + 1
    if version < 1:
        return
    for operator, partitions in sorted(facts.checkpoint.inventory.stores.items()):
        missing = [
            number
            for number, stores in sorted(partitions.items())
            if stores and all(held.newest == version - 1 for held in stores.values())
        ]
        complete = [
            number
            for number, stores in partitions.items()
            if stores and all(version in held.loadable for held in stores.values())
        ]
        if missing and complete and len(missing) + len(complete) == len(partitions):
            yield Partly(operator, version - 1, missing[0], len(missing), len(partitions))


CHECK = Check(
    "SW-STATE-009",
    Severity.STOP,
    find=find,
    doc=__doc__,
    text="batch {it.batch} is committed, and {it.missing} of the {it.partitions} partitions of operator {it.operator} "
    "have no state of it",
    risk="stuck",
    goal="rebuild",
    certainty="likely",
    where="{facts.checkpoint.location}/state/{it.operator}/{it.first}",
    expected="state of batch {it.batch} in every partition",
    found="state of the batch before as the newest",
    next=rebuild,
    advice="if the sink is a batch function, let it read its whole DataFrame first; otherwise the batch fails again",
)
