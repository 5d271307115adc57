"""Partitions that the stream reads do not exist, or are not subscribed.

What it finds: the position of the stream has partitions that the brokers do not have, or topics that the recorded
query does not subscribe to.
Why it matters: with `failOnDataLoss` the query fails. Without it Spark drops their positions: a topic that comes back
later is read from its oldest record, so that its rows are there twice.
How to confirm: `kafka-topics.sh --describe` lists the partitions; `slackwater offsets STREAM` the stream's positions.
What to do: create the topic again under another name, or subscribe to it; if it was removed on purpose, start once with
`failOnDataLoss=false`, and set it back to true.
Is the remedy safe: unread records of a deleted topic are lost. With the option left at false every later loss is
silent.
References: Structured Streaming + Kafka Integration Guide, option failOnDataLoss
"""

from __future__ import annotations

from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.served import with_problem

CHECK = Check(
    "SW-KAFKA-004",
    Severity.STOP,
    find=with_problem("partitions-gone"),
    doc=__doc__,
    text="{it.parts} partitions in the position of source {it.source} do not exist, or are not subscribed any more",
    risk="loss",
    where="{it.place}",
    expected="{it.expected}",
    found="{it.found}",
    advice="subscribe to the topic again; if it was removed on purpose, start once with failOnDataLoss=false",
    needs=("positions",),
)
