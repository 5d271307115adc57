"""The log of a topic was cut at its end.

What it finds: a partition ends before the position of the stream, and its topic is the one that was read: it has the
recorded id, or, where none is recorded, records that are as old as the batch. A replica that lacked the newest records
became the leader (`unclean.leader.election.enable`).
Why it matters: with `failOnDataLoss` the query fails. Without it Spark takes the lower end as its position, or waits
until the partition has passed the old one: what is written until then is never read.
How to confirm: `kafka-get-offsets.sh --time -1` lists the ends; `slackwater offsets STREAM` the stream's positions; the
brokers' logs have the election.
What to do: start at the end that is left, keep the output, and leave the other partitions where they are: `slackwater
plan reset STREAM --from shift:0 --output keep`.
Is the remedy safe: yes, for records that are gone: the stream has read them, and no row is written twice. Records that
came to the partition after it was cut are before its present end: where there are some, give the offset of the first
with `--from offsets:FILE`.
References: Apache Kafka documentation, "Unclean leader election"; Structured Streaming + Kafka Integration Guide,
option failOnDataLoss
"""

from __future__ import annotations

from slackwater.core.commands import reset_command
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.served import with_problem

CHECK = Check(
    "SW-KAFKA-015",
    Severity.STOP,
    find=with_problem("log-cut"),
    doc=__doc__,
    text="{it.parts} partitions of source {it.source} were cut at their end: {it.records} offsets before the position "
    "of the stream are gone, and are given to other records",
    risk="loss",
    goal="reset",
    where="{it.place}",
    expected="{it.expected}",
    found="{it.found}",
    next=lambda facts, _: reset_command(facts.snapshot, "--output", "keep", start="shift:0"),
    needs=("positions",),
    refuses_start=True,
)
