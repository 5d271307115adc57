"""The entry before the newest one in ``offsets/`` is missing.

What it finds: the newest batch has an entry in `offsets/`, and the batch before it has none. Its end is the start of
the newest batch.
Why it matters: Spark refuses to start with "batch N doesn't exist", at every start.
How to confirm: `slackwater inspect STREAM` lists the entries of both logs.
What to do: `slackwater plan resume STREAM` writes the entry again from the ledger's copy.
Is the remedy safe: yes; the copy is what Spark wrote, and nothing else is changed. What Spark's message advises, to
delete the newest entries, goes back to an older batch: at-least-once sinks then have rows twice, and a file sink skips
the new ones.
References: SPARK-38033
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.commands import resume
from slackwater.diagnose.checks.common.logs import has_gaps_by_design


class Gap(NamedTuple):
    """The missing batch, the newest one, and the newest that is there before both; -1 for none."""

    missing: int
    newest: int
    before: int


def find(facts: Facts) -> Iterator[Gap]:
    """A gap directly below the newest entry, where the logs are not those of asynchronous progress tracking."""
    ids = facts.checkpoint.offset_ids
    if not ids or ids[-1] == 0 or ids[-1] - 1 in ids or has_gaps_by_design(facts.checkpoint):
        return
    if ids[-1] - 1 > facts.checkpoint.committed + 1 > 0:
        # A number far behind all others is no batch of this query: SW-STORE-007.
        return
    yield Gap(ids[-1] - 1, ids[-1], ids[-2] if len(ids) > 1 else -1)


CHECK = Check(
    "SW-LOG-006",
    Severity.STOP,
    find=find,
    doc=__doc__,
    text="batch {it.missing} has no entry in offsets/, and batch {it.newest} starts where it ended: "
    'a start is refused with "batch {it.missing} doesn\'t exist"',
    risk="stuck",
    goal="resume",
    where="{facts.checkpoint.location}/offsets/{it.missing}",
    expected="the plan of batch {it.missing}",
    found="nothing",
    next=resume,
    advice="restore offsets/{it.missing} from a copy of the checkpoint; without one, start a new checkpoint at the "
    "positions after the newest written batch",
    damage=lambda it: (f"offsets/{it.missing}",),
)
