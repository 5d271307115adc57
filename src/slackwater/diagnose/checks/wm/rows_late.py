"""The watermark has dropped rows as late.

What it finds: recorded batches in which a stateful operator dropped rows that were older than the watermark.
Why it matters: these rows are in no result, and Spark reports no error.
How to confirm: `slackwater ledger STREAM --batches 0..` shows the rows that each batch dropped, in the column `late`.
Spark counts them as they reach the operator: rows that it has aggregated before count as one.
What to do: if the rows matter, give the watermark a longer delay and reset the stream, or backfill their range into a
directory. If a slow or restarted producer sends them, correct it first.
Is the remedy safe: a backfill leaves the position of the stream as it is. A longer delay alone does not bring the rows
back, and windows that the old delay has closed stay closed.
References: Structured Streaming Programming Guide, "Handling Late Data and Watermarking"; `StateOperatorProgress`
(`numRowsDroppedByWatermark`)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check


class Late(NamedTuple):
    """The number of dropped rows, of the batches that dropped some, and the first and the last of these."""

    rows: int
    batches: int
    first: int
    last: int


def find(facts: Facts) -> Iterator[Late]:
    """The batches of the generation in use that dropped rows."""
    late = [one for one in facts.batches if one.late_rows]
    if late:
        yield Late(sum(one.late_rows for one in late), len(late), late[0].batch_id, late[-1].batch_id)


CHECK = Check(
    "SW-WM-010",
    Severity.WARNING,
    find=find,
    doc=__doc__,
    text="{it.rows} rows or more were dropped as late, in {it.batches} of the batches {it.first} to {it.last}",
    risk="loss",
    where="batches {it.first} to {it.last}",
    expected="rows within the delay of the watermark",
    found="{it.rows} rows or more that were older",
    at_stake="{it.rows} rows or more are in no result",
    advice="give the watermark a longer delay for rows to come; backfill the range of those that were dropped",
    needs=("history",),
)
