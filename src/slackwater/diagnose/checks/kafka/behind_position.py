"""A partition ends before the position of the stream.

What it finds: the next offset that the stream would read is after the end of the partition: the topic was created
again, its log was cut at its end, or the brokers are those of another cluster. The id of the topic is not recorded, and
the partition has no record whose time shows which.
Why it matters: with `failOnDataLoss` the query fails. Without it Spark takes the lower end as its position: records
that were written to the new topic until then are never read.
How to confirm: `kafka-get-offsets.sh --time -1` lists the ends; `slackwater offsets STREAM` the stream's positions.
What to do: find out which it was. A new topic is read from its beginning into the same output: `slackwater plan reset
STREAM --from earliest --output keep`. A log that was cut is read from the end that is left: `slackwater plan reset
STREAM --from shift:0 --output keep`.
Is the remedy safe: `earliest` doubles the rows of records that are still there from before; `shift:0` never reads
those that a new topic has already. A broker that lags behind reports a lower end for a short time: compare again before
anything is changed.
References: Structured Streaming + Kafka Integration Guide, option failOnDataLoss; KAFKA-7703
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.commands import reset_command
from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.served import with_problem


class Behind(NamedTuple):
    """A source, the first partition, what was compared, how many partitions and records, and what can be done."""

    source: str
    place: str
    expected: str
    found: str
    parts: int
    records: int
    ways: str


def find(facts: Facts) -> Iterator[Behind]:
    """Each source with partitions that end before the position."""
    again, cut = (reset_command(facts.snapshot, "--output", "keep", start=one) for one in ("earliest", "shift:0"))
    ways = f"if the topic was created again: {again}; if its log was cut at its end: {cut}" if facts.recorded else ""
    for lacking in with_problem("behind-position")(facts):
        yield Behind(*lacking, ways)


CHECK = Check(
    "SW-KAFKA-002",
    Severity.STOP,
    find=find,
    doc=__doc__,
    text="{it.parts} partitions of source {it.source} end before the position of the stream: "
    "the topic was created again, its log was cut, or this is another cluster",
    risk="loss",
    goal="reset",
    where="{it.place}",
    expected="{it.expected}",
    found="{it.found}",
    advice="{it.ways}",
    needs=("positions",),
    also=("KAFKA-14",),
    refuses_start=True,
)
