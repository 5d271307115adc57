"""The newest batch was written by the continuous trigger.

What it finds: the metadata line of the newest entry of `offsets/` is empty, as only the continuous trigger leaves it.
Why it matters: A start with the continuous trigger continues. One with micro-batches fails with a
NullPointerException (currentWatermark), although the documentation calls all triggers interchangeable.
How to confirm: `slackwater inspect LOCATION` shows no time of planning; line 2 of the newest file in `offsets/` is
empty.
What to do: keep the continuous trigger. For micro-batches give the query a new checkpoint that starts at the
positions of the newest entry, and see first what the output does with batch ids that begin again at 0.
Is the remedy safe: the continuous trigger is at-least-once, as before. To insert a metadata line by hand removes the
exception, but the offsets of some sources have another form in continuous mode.
References: Structured Streaming performance tips, Continuous Processing
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check


class Epoch(NamedTuple):
    """The newest entry."""

    batch: int


def find(facts: Facts) -> Iterator[Epoch]:
    """A newest entry without metadata."""
    newest = facts.checkpoint.newest_offset
    if newest is not None and newest.metadata is None:
        yield Epoch(facts.checkpoint.planned)


CHECK = Check(
    "SW-MODE-004",
    Severity.INFO,
    find=find,
    doc=__doc__,
    text="batch {it.batch} was written by the continuous trigger: a start with micro-batches fails with a "
    "NullPointerException",
    risk="stuck",
    goal="resume",
    where="{facts.checkpoint.location}/offsets/{it.batch}",
    advice="keep the continuous trigger, or give the query a new checkpoint for micro-batches",
)
