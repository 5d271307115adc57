"""The log of the source table starts after the position of the stream.

What it finds: the version at which the stream continues is older than the oldest entry in `_delta_log`.
Why it matters: what these versions added is unknown to the stream. Delta fails with
DELTA_MISSING_FILES_UNEXPECTED_VERSION. With `failOnDataLoss=false` a restart fails, too, where the last batch that was
read is among them (DELTA_STREAMING_TRAILING_COMMIT_MISSING); else their rows are left out silently.
How to confirm: list `_delta_log` below the table; `slackwater inspect STREAM` shows the version.
What to do: process the table whole, as it is now, into a new output, which then replaces the old one: `slackwater plan
reset STREAM --from earliest`. The table still has the rows of the missing versions, unless they were deleted from it.
Is the remedy safe: yes, if no row was deleted from the table or updated in it; the undo restores the old output. To set
`failOnDataLoss` to false loses the rows.
References: Delta Lake documentation, "Table streaming reads and writes", property delta.logRetentionDuration
"""

from __future__ import annotations

from slackwater.core.commands import reset_command
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
    goal="reset",
    where="{it.place}",
    expected="{it.expected}",
    found="{it.found}",
    at_stake="the rows of {it.records} versions",
    next=lambda facts, _: reset_command(facts.snapshot),
    advice="the table itself has their rows, unless they were deleted: it is processed whole, and replaces the output",
    needs=("positions",),
)
