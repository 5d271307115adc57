"""A pinned setting changes from one batch to the next.

What it finds: two consecutive entries of `offsets/` have different values of a setting that Spark takes from the newest
entry at each start, so that it never changes. Spark's offline repartition, which changes the number of partitions in a
batch of the same time, is not found; a setting that only the newer entry has is from an upgrade.
Why it matters: the newest entry decides how the state is read: with how many partitions, by which provider, in which
format. With a wrong value Spark fails, or looks for keys where they are not.
How to confirm: compare the second lines of the two files.
What to do: if nobody has edited the entry on purpose, restore it from a copy of the checkpoint, or write the value of
the other entries into it again, and delete the checksum next to it.
Is the remedy safe: yes, before the next batch is planned: state is then read as it was written. Where a later batch has
run with the new value, its state has the new form: let it be.
References: Structured Streaming Programming Guide, "Additional Information", Miscellaneous Notes
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from slackwater.core.checkpoint import BatchLine
from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.settings import PARTITIONS, PINNED


class Changed(NamedTuple):
    """The batch, the batch before it, the setting, and both values."""

    batch: int
    before: int
    setting: str
    value: str
    now: str


def find(facts: Facts) -> Iterator[Changed]:
    """The newest change of each setting. A plan of Slackwater's may change some: of a recorded stream it is known."""
    if facts.recorded:
        return
    planned = [line for line in facts.checkpoint.report.batches if line.settings is not None]
    found = {one.setting: one for earlier, later in pairwise(planned) for one in _changes(earlier, later)}
    yield from found.values()


def _changes(earlier: BatchLine, later: BatchLine) -> Iterator[Changed]:
    before, after = earlier.settings or {}, later.settings or {}
    for setting in PINNED:
        # An offline repartition (Spark 4.2) copies the entry with its time, and changes this setting.
        repartitioned = setting == PARTITIONS and earlier.timestamp_ms == later.timestamp_ms
        if setting in before and setting in after and before[setting] != after[setting] and not repartitioned:
            yield Changed(later.id, earlier.id, setting, before[setting], after[setting])


CHECK = Check(
    "SW-LOG-019",
    Severity.WARNING,
    find=find,
    doc=__doc__,
    text="{it.setting} changes from batch {it.before} to batch {it.batch}, which Spark does not do: "
    "an entry was edited",
    risk="wrong",
    goal="rebuild",
    certainty="likely",
    where="{facts.checkpoint.location}/offsets/{it.batch}",
    expected="{it.value}, as in offsets/{it.before}",
    found="{it.now}",
    advice="find out which entry was edited, and restore it from a copy of the checkpoint",
)
