"""A newer Spark continues the checkpoint.

What it finds: the last run had a newer release of Spark than the runs before it on this checkpoint.
Why it matters: logs and state of older releases are read. Settings that the checkpoint pins keep their values, and
those that it does not pin keep the defaults of the old release, not those of the new one.
How to confirm: `slackwater inspect STREAM` lists the pinned settings; the driver's log names each default that is
used.
What to do: nothing. Keep a copy of the checkpoint and of the output of the same time until the new release has proven
itself: a downgrade is not promised by Spark.
Is the remedy safe: yes; nothing is changed.
References: Structured Streaming migration guide
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.releases import Releases, changed_release


def find(facts: Facts) -> Iterator[Releases]:
    """A last run with a newer release."""
    found = changed_release(facts)
    if found is not None and found.is_upgrade:
        yield found


CHECK = Check(
    "SW-VER-002",
    Severity.INFO,
    find=find,
    doc=__doc__,
    text="Spark {it.now} continues a checkpoint of Spark {it.before}: what the checkpoint does not pin keeps the "
    "default of the older release",
    risk="none",
    where="{facts.checkpoint.location}",
    expected="Spark {it.before}",
    found="Spark {it.now}",
    needs=("history",),
)
