"""A batch takes longer than its rows take to arrive.

What it finds: in ten recorded batches with rows, each left at least as many rows unread in the sources as the one
before, and the newest left more than it read, and twice as many as the first.
Why it matters: nothing is lost yet, but results are later with each batch, and once the source's retention removes rows
that were not read, they are in no result.
How to confirm: `slackwater status STREAM` shows the rows that are waiting now. A backlog that is read for the first
time is large, but does not grow.
What to do: give the query more cores or fewer shuffle partitions, merge small files, or raise a limit of its source
(maxOffsetsPerTrigger) that is lower than what arrives.
Is the remedy safe: yes. Sources, state and output stay as they are; the number of shuffle partitions of a query with
state is kept from its first batch on.
References: Structured Streaming Programming Guide, "Monitoring Streaming Queries"; `SourceProgress` (`latestOffset`)
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.commands import command
from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.progress import Growing, lag_of, never_falls, with_rows

_BATCHES = 10


def find(facts: Facts) -> Iterator[Growing]:
    """The newest batches, if each of them left more rows than the one before."""
    batches = with_rows(facts, _BATCHES)
    waiting = [rows for rows in map(lag_of, batches) if rows is not None]
    if len(waiting) < _BATCHES or not never_falls(waiting):
        return
    if waiting[-1] > max(2 * waiting[0], batches[-1].input_rows):
        yield Growing(waiting[0], waiting[-1], batches[0].batch_id, batches[-1].batch_id)


CHECK = Check(
    "SW-APP-010",
    Severity.WARNING,
    find=find,
    doc=__doc__,
    text="{it.after} rows wait in the sources after batch {it.last}, {it.before} after batch {it.first}: the batches "
    "are slower than the rows that arrive",
    risk="loss",
    certainty="likely",
    where="batches {it.first} to {it.last}",
    expected="{it.before} rows or fewer",
    found="{it.after} rows",
    at_stake="the rows that the retention of the source removes before they are read",
    next=lambda facts, _: command("status", facts.name),
    advice="give the query more cores or fewer shuffle partitions, or raise the limit of its source",
    needs=("history",),
)
