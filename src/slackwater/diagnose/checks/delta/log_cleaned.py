"""The log of the source table starts after the position of the stream.

What it finds: the version at which the stream continues is older than the oldest entry in `_delta_log`.
Why it matters: what these versions added is unknown to the stream. Delta fails with
DELTA_MISSING_FILES_UNEXPECTED_VERSION; with `failOnDataLoss=false` it leaves their rows out silently.
How to confirm: list `_delta_log` below the table; `slackwater inspect STREAM` shows the version.
What to do: read the rows of these versions from the table itself with a backfill, or start again with
`slackwater plan reset STREAM`.
Is the remedy safe: a backfill that selects rows by their time can read some twice; the plan shows its range. To set
`failOnDataLoss` to false loses the rows.
References: Delta Lake documentation, "Table streaming reads and writes", property delta.logRetentionDuration
"""

from __future__ import annotations

from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.served import with_problem

CHECK = Check(
    "SW-DELTA-006",
    Severity.STOP,
    find=with_problem("versions-cleaned"),
    doc=__doc__,
    text="the log of the table that source {it.source} reads lacks {it.records} versions after the position of the "
    "stream",
    risk="loss",
    goal="backfill",
    where="{it.place}",
    expected="{it.expected}",
    found="{it.found}",
    at_stake="the rows of {it.records} versions",
    advice="read the rows of these versions from the table itself, and then start at a version that the log has",
    needs=("positions",),
)
