"""The logs have the gaps of asynchronous progress tracking.

What it finds: `offsets/` and `commits/` lack the same batches, as asynchronous progress tracking leaves them, and the
batch before the newest is one of them.
Why it matters: A start with asynchronous progress tracking continues. One without it is refused with "batch N doesn't
exist". After a crash all batches since the newest entry run again as one.
How to confirm: `slackwater inspect LOCATION` lists the entries of both logs.
What to do: start the query with asynchronous progress tracking. To switch it off, first run at least two batches with
the option asyncProgressTrackingCheckpointIntervalMs=0.
Is the remedy safe: yes; the option has Spark write an entry for each batch. To delete entries or to write the missing
ones by hand gives batches other ranges than they had.
References: Structured Streaming performance tips, Asynchronous progress tracking
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.logs import has_gaps_by_design


class Gap(NamedTuple):
    """The batch without an entry, and the newest one."""

    missing: int
    newest: int


def find(facts: Facts) -> Iterator[Gap]:
    """A gap by design directly below the newest entry."""
    ids = facts.checkpoint.offset_ids
    if len(ids) > 1 and ids[-1] - 1 not in ids and has_gaps_by_design(facts.checkpoint):
        yield Gap(ids[-1] - 1, ids[-1])


CHECK = Check(
    "SW-MODE-003",
    Severity.INFO,
    find=find,
    doc=__doc__,
    text="the logs have the gaps of asynchronous progress tracking: a start without it is refused with "
    '"batch {it.missing} doesn\'t exist"',
    risk="stuck",
    goal="resume",
    where="{facts.checkpoint.location}/offsets",
    certainty="likely",
    advice="start the query with asynchronous progress tracking; before it is switched off, run two batches with "
    "asyncProgressTrackingCheckpointIntervalMs=0",
)
