"""Batches take longer than the interval of their trigger.

What it finds: of the ten newest recorded batches with rows, most took longer than the interval of the trigger that
their run was started with.
Why it matters: the next batch starts late and reads more. Results are older than the interval promises, and where rows
arrive faster than they are read, the backlog grows.
How to confirm: `slackwater ledger STREAM` shows how long each batch took, in the column `took`.
What to do: give the query more cores or fewer shuffle partitions, limit how much a batch reads (maxOffsetsPerTrigger,
maxFilesPerTrigger), or set a longer interval.
Is the remedy safe: yes. Sources, state and output stay as they are; the number of shuffle partitions of a query with
state is kept from its first batch on.
References: Structured Streaming Programming Guide, "Triggers"; `StreamingQueryProgress` (`durationMs`)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.commands import command
from slackwater.core.facts import Facts, Unknown
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.progress import with_rows

_BATCHES = 10


class Slow(NamedTuple):
    """The number of long batches, the longest of them, and the first and the last of those that were looked at."""

    batches: int
    longest_ms: int
    interval_ms: int
    first: int
    last: int


def find(facts: Facts) -> Iterator[Slow]:
    """The newest batches of one run, if most of them took longer than its trigger's interval."""
    batches = with_rows(facts, _BATCHES)
    runs = {one.run for one in batches}
    if isinstance(facts.history, Unknown) or len(runs) != 1:
        return
    interval_ms = next((run.trigger_ms for run in facts.history.runs if run.id in runs), None)
    took = [one.durations_ms.get("triggerExecution", 0) for one in batches]
    long = [one for one in took if interval_ms is not None and one > interval_ms]
    if interval_ms is not None and 2 * len(long) > _BATCHES:
        yield Slow(len(long), max(long), interval_ms, batches[0].batch_id, batches[-1].batch_id)


CHECK = Check(
    "SW-APP-012",
    Severity.WARNING,
    find=find,
    doc=__doc__,
    text="{it.batches} of the batches {it.first} to {it.last} took longer than the {it.interval_ms} ms of their "
    "trigger",
    risk="none",
    where="batches {it.first} to {it.last}",
    expected="{it.interval_ms} ms at most",
    found="up to {it.longest_ms} ms",
    next=lambda facts, _: command("ledger", facts.name),
    advice="give the query more cores, limit how much a batch reads, or set a longer interval",
    needs=("history",),
)
