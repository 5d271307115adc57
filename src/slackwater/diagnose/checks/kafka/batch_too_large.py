"""A planned batch is far larger than any batch before it, and runs do not complete it.

What it finds: the planned batch reads at least ten times as many records as the largest recorded batch, or no
batch is recorded, and the last two runs or more have ended without completing it.
Why it matters: Spark keeps the planned range, also if the source has a limit now. A batch that needs more memory or
time than the application has never ends, and no later data is read.
How to confirm: `slackwater ledger STREAM` shows how the runs ended; `slackwater inspect LOCATION` shows the
range of the batch.
What to do: start the query with more memory and executors until the batch is committed, and set a limit for those after
it: `maxOffsetsPerTrigger`.
Is the remedy safe: yes, the batch is written once. A reset or rebuild plans the same range again if the source has no
limit.
References: Structured Streaming + Kafka Integration Guide, option maxOffsetsPerTrigger
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.commands import run_command
from slackwater.core.errors import FormatError
from slackwater.core.facts import Facts, SourceFacts, Unknown
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.sources import kind_of
from slackwater.sources.common.contract import SourceRange

_TIMES = 10
_FEWEST_RUNS = 2
_UNSUCCESSFUL = (None, "killed", "failed", "interrupted")
"""How such a run ends; ``None`` until the next start records that it was killed."""


class TooLarge(NamedTuple):
    """The batch, what it reads, what the largest batch before it has read, and the runs that did not complete it."""

    batch: int
    rows: int
    largest: int
    runs: int


def find(facts: Facts) -> Iterator[TooLarge]:
    """The planned batch, if it is larger than all before it and was tried more than once."""
    marks = facts.snapshot.marks
    if not marks.next_is_planned or facts.snapshot.holder is not None:
        return
    runs = _runs_without_batch(facts)
    rows = sum(_rows(source) for source in facts.sources)
    largest = max((batch.input_rows for batch in facts.batches), default=0)
    if runs >= _FEWEST_RUNS and rows > max(largest, 1) * _TIMES:
        yield TooLarge(marks.planned, rows, largest, runs)


def _runs_without_batch(facts: Facts) -> int:
    """How many of the last runs have completed no batch."""
    if isinstance(facts.history, Unknown):
        return 0
    done = max((batch.run or 0 for batch in facts.batches), default=0)
    generation = facts.snapshot.generation.number
    return sum(
        run.id > done and run.generation == generation and run.end in _UNSUCCESSFUL for run in facts.history.runs
    )


def _rows(source: SourceFacts) -> int:
    """The rows that the planned batch reads of a source, 0 where its offsets do not tell."""
    try:
        return kind_of(source.end or "", {}).rows(SourceRange(source.name, source.start, source.end)) or 0
    except FormatError:
        return 0


CHECK = Check(
    "SW-KAFKA-013",
    Severity.WARNING,
    find=find,
    doc=__doc__,
    text="batch {it.batch} reads {it.rows} records, the largest batch before it {it.largest}, and the last "
    "{it.runs} runs did not complete it",
    risk="stuck",
    goal="resume",
    certainty="likely",
    where="batch {it.batch}",
    expected="a batch of about {it.largest}",
    found="{it.rows} records",
    next=lambda facts, _: run_command(facts.snapshot.stream),
    advice="start the query with more memory or executors until the batch is committed; then set maxOffsetsPerTrigger",
    needs=("history",),
)
