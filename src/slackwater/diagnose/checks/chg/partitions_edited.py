"""The number of state partitions is not the pinned one.

What it finds: the newest committed batch pins another number of shuffle partitions than its state has.
Why it matters: rows are assigned to partitions of state by this number. With a lower one Spark leaves whole partitions
of state out, silently, and looks for keys in the wrong ones; with a higher one it fails with "1.delta does not exist".
How to confirm: compare the setting with the partitions in `slackwater inspect STREAM --operators`.
What to do: `slackwater plan rebuild STREAM` recomputes the state. Or restore the entry from a copy of the checkpoint.
Is the remedy safe: yes; the output is not touched. The number in `offsets/` must never be edited: Spark ignores the
session's value on purpose, and Spark 4.2 and later can repartition the state offline.
References: SPARK-19873; Structured Streaming Programming Guide, "Additional Information", Miscellaneous Notes
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.commands import rebuild
from slackwater.diagnose.checks.common.settings import newest_committed, pinned_partitions

_SINGLE = (0,)


class Edited(NamedTuple):
    """An operator, the number that is pinned, and the number of partitions with the state of the newest batch."""

    operator: int
    pinned: int
    present: int
    batch: int


def find(facts: Facts) -> Iterator[Edited]:
    """The operators of which other partitions have the newest state than those that are pinned."""
    checkpoint = facts.checkpoint
    pinned = pinned_partitions(newest_committed(checkpoint))
    if pinned is None:
        return
    version = checkpoint.committed + 1
    for operator, partitions in sorted(checkpoint.inventory.stores.items()):
        # An offline repartition leaves the old partitions, without the versions after it.
        current = {
            number for number, stores in partitions.items() if any(version in one.loadable for one in stores.values())
        }
        if tuple(current) == _SINGLE or current != set(range(len(current))) or len(current) == pinned:
            continue
        if len(current) > pinned or set(partitions) == current:
            yield Edited(operator, pinned, len(current), checkpoint.committed)


CHECK = Check(
    "SW-CHG-008",
    Severity.STOP,
    find=find,
    doc=__doc__,
    text="batch {it.batch} pins {it.pinned} shuffle partitions, and operator {it.operator} has its state in "
    "{it.present}: keys would be looked for in the wrong partitions",
    risk="wrong",
    goal="rebuild",
    where="{facts.checkpoint.location}/offsets/{it.batch}",
    expected="spark.sql.shuffle.partitions of {it.present}",
    found="{it.pinned}",
    next=rebuild,
    advice="restore offsets/{it.batch} from a copy of the checkpoint",
)
