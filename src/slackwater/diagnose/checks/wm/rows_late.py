"""The watermark has dropped rows as late.

What it finds: recorded batches in which a stateful operator dropped rows that were older than the watermark, up to the
first batch of a program with a longer delay.
Why it matters: these rows are in no result, and Spark reports no error.
How to confirm: `slackwater ledger STREAM --batches 0..` shows the rows that each batch dropped, in the column `late`.
Spark counts them as they reach the operator: rows that it has aggregated before count as one.
What to do: if the rows matter, give the watermark a longer delay in the code, then `slackwater plan reset STREAM --from
earliest` processes everything again in order. If a slow or restarted producer sends them, correct it first. A longer
delay alone is for rows to come. Where the rows do not matter, nothing: only the newest 200 batches are looked at.
Is the remedy safe: the plan shows what happens to the output, and which rows the sources no longer have. A longer delay
alone does not bring the rows back, and windows that the old delay has closed stay closed.
References: Structured Streaming Programming Guide, "Handling Late Data and Watermarking"; `StateOperatorProgress`
(`numRowsDroppedByWatermark`)
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.commands import reset_command
from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.core.state_programs import parsed_program
from slackwater.diagnose.checks.common.check import Check


class Late(NamedTuple):
    """The number of dropped rows, of the batches that dropped some, and the first and the last of these."""

    rows: int
    batches: int
    first: int
    last: int


def find(facts: Facts) -> Iterator[Late]:
    """The batches of the generation in use that dropped rows with a delay that is not shorter than the present one."""
    late = [one for one in facts.batches if one.late_rows and not _is_answered(facts, one.batch_id)]
    if late:
        yield Late(sum(one.late_rows for one in late), len(late), late[0].batch_id, late[-1].batch_id)


def _is_answered(facts: Facts, batch: int) -> bool:
    """Whether the program that runs now has a longer delay than the one that made a batch."""
    was, now = _delay_ms(facts, batch), _delay_ms(facts, sys.maxsize)
    return was is not None and now is not None and was < now


def _delay_ms(facts: Facts, batch: int) -> int | None:
    """The longest delay of the program that made a batch; ``None`` where that is not recorded."""
    program = parsed_program(facts.snapshot.generation.programs, batch)
    inputs = (one for operator in program.operators for one in operator.inputs) if program is not None else ()
    return max((mark.delay_ms for one in inputs for mark in one.watermarks), default=None)


CHECK = Check(
    "SW-WM-010",
    Severity.WARNING,
    find=find,
    doc=__doc__,
    text="{it.rows} rows or more were dropped as late, in {it.batches} of the batches {it.first} to {it.last}",
    risk="loss",
    goal="reset",
    where="batches {it.first} to {it.last}",
    expected="rows within the delay of the watermark",
    found="{it.rows} rows or more that were older",
    at_stake="{it.rows} rows or more are in no result",
    next=lambda facts, _: reset_command(facts.snapshot),
    advice="first give the watermark a longer delay in the code; where the rows do not matter, do nothing",
    needs=("history",),
)
