"""An interrupted batch will be written a second time.

What it finds: the newest batch is planned and not committed, and the sink cannot recognise a batch that it has: a batch
function, a JDBC writer that appends, Spark's own Kafka sink.
Why it matters: the sink may have all rows of the batch, some, or none. The next start writes all of them, so that those
that are there are doubled. Spark reports nothing.
How to confirm: `slackwater inspect LOCATION` shows the range of the batch; look for its rows in the output.
What to do: delete the rows of the batch from the output and start the query. Where the output has all of them, and the
query keeps no state, the batch can be counted as done instead: its entry of `commits/` is a copy of the one before.
Is the remedy safe: yes, while no query runs. A deleted checkpoint has every batch written a second time.
References: Structured Streaming Programming Guide, ForeachBatch; docs/decisions/0120-sinks-that-show-nothing.md
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.commands import run_command
from slackwater.core.escaping import quoted
from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.rules import at_least_once
from slackwater.diagnose.rules.common.facts import sink_kind


class Again(NamedTuple):
    """The batch, the kind of the sink, the command that starts the query, and what counts the batch as done."""

    batch: int
    sink: str
    start: str
    done: str


def find(facts: Facts) -> Iterator[Again]:
    """The interrupted batch, where a sink that appends does not show whether it has it."""
    snapshot = facts.snapshot
    delivery, marks = snapshot.output.delivery, snapshot.marks
    if delivery is None or delivery.guarantee != "at-least-once" or not marks.next_is_planned:
        return
    if marks.planned < 0:
        # The batches of a lost checkpoint are those of checkpoint-lost.
        return
    if snapshot.holder is None and snapshot.stream.output_mode in ("", "append"):
        start = run_command(snapshot.stream)
        yield Again(marks.planned, sink_kind(snapshot), start or "start the query", _done(facts, marks.planned))


def _done(facts: Facts, batch: int) -> str:
    """What makes the batch a committed one; nothing where its state or the entry before it would be missing."""
    checkpoint = facts.checkpoint
    if checkpoint.report.operators or not checkpoint.has(f"commits/{batch - 1}"):
        return ""
    commits = f"{checkpoint.location.rstrip('/')}/commits"
    if "://" in commits:
        return f"; if the output has all of them, copy {commits}/{batch - 1} to {commits}/{batch} and start the query"
    copied = f"cp {quoted(f'{commits}/{batch - 1}')} {quoted(f'{commits}/{batch}')}"
    return f"; if the output has all of them, start the query after: {copied}"


CHECK = Check(
    "SW-SINK-003",
    Severity.WARNING,
    find=find,
    doc=__doc__,
    text="batch {it.batch} was interrupted, and the {it.sink} sink does not show which of its rows it has: the next "
    "start writes all of them, also those that are there",
    risk="duplicate",
    goal="resume",
    certainty="possible",
    where="{facts.checkpoint.location}/offsets/{it.batch}",
    expected="no row of batch {it.batch} in the output",
    found="no entry {it.batch} in commits/",
    at_stake="the rows of batch {it.batch}",
    advice="look for the rows of batch {it.batch} in the output, and delete what is there of them; then: "
    "{it.start}{it.done}",
    needs=("sink",),
    also=("SINK-04", "SINK-05"),
    explains=(at_least_once.RULE.code,),
)
