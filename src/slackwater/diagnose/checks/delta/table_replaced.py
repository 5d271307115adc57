"""The source table was created again.

What it finds: the position of the stream names another table id than the Delta table at the recorded path has.
Why it matters: versions of the new table have nothing to do with those that were read. Delta refuses to continue with
DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE, at every start.
How to confirm: compare the id in `slackwater inspect STREAM` with `DESCRIBE DETAIL` of the table.
What to do: restore the old table, or start again: `slackwater plan reset STREAM --from latest --output keep` after
`startingVersion` was set to the first version with new rows.
Is the remedy safe: only with a start position. A reset without one reads the whole new table, so that rows which were
copied into it are in the output twice.
References: Delta Lake documentation, "Table streaming reads and writes"
"""

from __future__ import annotations

from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.served import with_problem

CHECK = Check(
    "SW-DELTA-005",
    Severity.STOP,
    find=with_problem("table-replaced"),
    doc=__doc__,
    text="the Delta table that source {it.source} reads was created again: the position belongs to another table",
    risk="stuck",
    goal="reset",
    where="{it.place}",
    expected="{it.expected}",
    found="{it.found}",
    advice="restore the old table; otherwise set startingVersion to the first version with new rows, and plan a reset",
    needs=("positions",),
)
