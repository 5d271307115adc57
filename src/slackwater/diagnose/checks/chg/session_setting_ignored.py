"""A setting of the session has no effect on this checkpoint.

What it finds: the last run had a setting that the newest batch pins with another value.
Why it matters: Spark uses the pinned value, and only logs a warning. Whoever changed the setting may rely on the other.
How to confirm: `slackwater inspect STREAM` lists the pinned settings.
What to do: set the session to the pinned value; or start with a new checkpoint, `slackwater plan reset STREAM`, which
pins the new one.
Is the remedy safe: the first changes nothing. The value must not be edited in `offsets/`: the state was made with the
pinned one.
References: SPARK-19873; Structured Streaming Programming Guide, "Additional Information", Miscellaneous Notes
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts, Unknown
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.settings import PARTITIONS, POLICY, PROVIDER, settings_of


class Ignored(NamedTuple):
    """The setting, the value of the session, the value that Spark uses, and the batch that pins it."""

    setting: str
    asked: str
    used: str
    batch: int


def find(facts: Facts) -> Iterator[Ignored]:
    """The settings of the newest run that the newest batch overrides."""
    if isinstance(facts.history, Unknown) or not facts.history.runs:
        return
    asked = facts.history.runs[0].settings or {}
    pinned = settings_of(facts.checkpoint.newest_offset)
    for setting in (PARTITIONS, PROVIDER, POLICY):
        if setting in asked and setting in pinned and asked[setting] != pinned[setting]:
            yield Ignored(setting, asked[setting], pinned[setting], facts.checkpoint.planned)


CHECK = Check(
    "SW-CHG-010",
    Severity.INFO,
    find=find,
    doc=__doc__,
    text="{it.setting} is {it.asked} in the session, and Spark uses {it.used}, which batch {it.batch} pins",
    risk="none",
    where="{facts.checkpoint.location}/offsets/{it.batch}",
    expected="{it.asked}",
    found="{it.used}",
    needs=("history",),
    also=("CHG-08", "CHG-09"),
)
