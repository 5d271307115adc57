"""The brokers have removed records that the next batch starts with.

What it finds: the position of the next batch is before the oldest offset that a partition has.
Why it matters: with `failOnDataLoss` the query fails; without it the records are left out silently, now and later.
How to confirm: `kafka-get-offsets.sh --time -2` lists the oldest offsets; `slackwater offsets STREAM` the stream's.
What to do: read the records from an archive with a backfill, if there is one; then start once with
`failOnDataLoss=false`, and set it back to true.
Is the remedy safe: the records that the finding counts are lost for this stream. With the option left at false every
later loss is silent; a new checkpoint with `startingOffsets=latest` loses what the brokers still have, too.
References: Structured Streaming + Kafka Integration Guide, option failOnDataLoss; SPARK-47135
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.commands import run_command
from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.served import with_problem


class Expired(NamedTuple):
    """A source, the first partition, what was compared, how many partitions and records, and what starts the query."""

    source: str
    place: str
    expected: str
    found: str
    parts: int
    records: int
    start: str


def find(facts: Facts) -> Iterator[Expired]:
    """Each source with records that were removed before they were read."""
    start = run_command(facts.snapshot.stream) if facts.recorded else None
    for lacking in with_problem("records-expired")(facts):
        yield Expired(*lacking, start or "start the query")


CHECK = Check(
    "SW-KAFKA-001",
    Severity.STOP,
    find=find,
    doc=__doc__,
    text="the brokers have removed {it.records} records of {it.parts} partitions that source {it.source} has not read",
    risk="loss",
    goal="backfill",
    where="{it.place}",
    expected="{it.expected}",
    found="{it.found}",
    at_stake="{it.records} records",
    advice="read the records from an archive; then set failOnDataLoss=false for one start; {it.start}; "
    "then set failOnDataLoss to true again",
    needs=("positions",),
)
