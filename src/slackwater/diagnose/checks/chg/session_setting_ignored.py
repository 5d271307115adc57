"""A setting of the session has no effect on this checkpoint.

What it finds: the session of `--pipeline`, else the last run, has another value of a setting than the newest batch
pins; or than Spark uses for a checkpoint that does not pin it, as one of an older release.
Why it matters: Spark uses the value of the checkpoint, and only logs a warning. Whoever changed the setting may rely
on the other.
How to confirm: `slackwater inspect STREAM` lists the pinned settings.
What to do: set the session to the pinned value; or start with a new checkpoint, `slackwater plan reset STREAM`, which
pins the new one.
Is the remedy safe: the first changes nothing. The value must not be edited in `offsets/`: the state was made with the
pinned one.
References: SPARK-19873; Structured Streaming Programming Guide, "Additional Information", Miscellaneous Notes
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from slackwater.core.facts import Facts, HistoryFacts, Judged
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.settings import ABSENT, PINNED, settings_of


class Ignored(NamedTuple):
    """The setting, the value of the session, the value that Spark uses, the newest batch, and why Spark uses it."""

    setting: str
    asked: str
    used: str
    batch: int
    why: str


def find(facts: Facts) -> Iterator[Ignored]:
    """The settings of the session that the checkpoint overrides."""
    batch, entry = facts.checkpoint.planned, facts.checkpoint.newest_offset
    if entry is None or entry.metadata is None:
        return
    asked, pinned = _asked(facts), settings_of(entry)
    for setting in PINNED:
        used = pinned.get(setting, ABSENT.get(setting))
        if used is not None and asked.get(setting, used) != used:
            why = f"which batch {batch} pins" if setting in pinned else f"as batch {batch} does not pin it"
            yield Ignored(setting, asked[setting], used, batch, why)


def _asked(facts: Facts) -> Mapping[str, str]:
    """What the session of the code has; without code what the last run was given."""
    if isinstance(facts.code, Judged):
        return facts.code.settings
    if isinstance(facts.history, HistoryFacts) and facts.history.runs:
        return facts.history.runs[0].settings or {}
    return {}


CHECK = Check(
    "SW-CHG-010",
    Severity.INFO,
    find=find,
    doc=__doc__,
    text="{it.setting} is {it.asked} in the session, and Spark uses {it.used}, {it.why}",
    risk="none",
    where="{facts.checkpoint.location}/offsets/{it.batch}",
    expected="{it.asked}",
    found="{it.used}",
    needs=("settings",),
    also=("CHG-08", "CHG-09"),
)
