"""The source table was created again.

What it finds: the position of the stream names another table id than the Delta table at the recorded path has.
Why it matters: versions of the new table have nothing to do with those that were read. Delta refuses to continue with
DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE, at every start.
How to confirm: compare the id in `slackwater inspect STREAM` with `DESCRIBE DETAIL` of the table.
What to do: restore the old table; or, if the new one has all rows, process it whole into a new output, which then
replaces the old one: `slackwater plan reset STREAM --from earliest`. If it has new rows only, add `--output keep`.
Is the remedy safe: a reset that replaces the output has the rows of the new table and no others; the undo restores the
old output. With `--output keep` rows that were copied into the new table are in the output twice.
References: Delta Lake documentation, "Table streaming reads and writes"
"""

from __future__ import annotations

from slackwater.core.commands import reset_command
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
    next=lambda facts, _: reset_command(facts.snapshot),
    advice="restore the old table; otherwise the new one is processed whole, and replaces the output: if it has new "
    "rows only, add --output keep to the reset",
    needs=("positions",),
    refuses_start=True,
)
