"""A log has a version that the Spark of the query cannot read.

What it finds: an entry of a log names a format version that is newer than the last run's Spark reads, or newer than
all that Slackwater knows.
Why it matters: Spark refuses to start with UnsupportedLogVersion. A newer Spark has continued the query meanwhile,
and writes what the older one cannot read.
How to confirm: `slackwater inspect LOCATION` shows the versions of the logs and the oldest Spark that writes them.
What to do: run the query with the Spark that wrote the logs, or a newer one. If `slackwater doctor LOCATION` does not
know the version, update Slackwater too.
Is the remedy safe: yes; nothing is changed. To edit the version line is not: Spark then parses the entry by another
layout, and has been seen to read a file twice.
References: SPARK-36519
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts, HistoryFacts
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.releases import minor_release

_FIRST_WITH = {("offsets", 2): (4, 2), ("commits", 2): (4, 0), ("commits", 3): (4, 2)}
"""The first Spark that reads each version of a log; version 1 is read by all."""


class TooNew(NamedTuple):
    """The entry, its version, what would be read, and which Spark is needed."""

    path: str
    expected: str
    found: str
    needed: str


def find(facts: Facts) -> Iterator[TooNew]:
    """Entries that no known Spark reads; then logs that the last run's Spark does not."""
    unknown = [one for one in facts.checkpoint.damage if one.kind == "too-new" and not one.path.startswith("state/")]
    for damage in unknown:
        yield TooNew(damage.path, damage.expected, damage.found, "a newer Spark than 4.3")
    if not unknown:
        yield from _not_for_last_run(facts)


def _not_for_last_run(facts: Facts) -> Iterator[TooNew]:
    history, report = facts.history, facts.checkpoint.report
    if not isinstance(history, HistoryFacts) or not history.runs:
        return
    spark = history.runs[0].spark_version
    for folder, version in (("offsets", report.offsets_version), ("commits", report.commits_version)):
        needed = _FIRST_WITH.get((folder, version or 1))
        if needed is not None and minor_release(spark) < needed:
            needs = f"Spark {needed[0]}.{needed[1]} or newer"
            yield TooNew(folder, f"what Spark {spark} of the last run reads", f"v{version}", needs)


CHECK = Check(
    "SW-VER-001",
    Severity.STOP,
    find=find,
    doc=__doc__,
    text="{it.path} has format version {it.found}, which needs {it.needed}: an older Spark refuses to start",
    risk="stuck",
    goal="resume",
    where="{facts.checkpoint.location}/{it.path}",
    expected="{it.expected}",
    found="{it.found}",
    advice="run the query with {it.needed}",
    also=("LOG-04",),
    damage=lambda it: (it.path,),
)
