"""A partition was added that does not start at offset 0.

What it finds: a subscribed topic has a partition that the stream has no position of, and its oldest offset is not 0.
Why it matters: Spark reads an added partition from its oldest record, whatever `startingOffsets` says, and takes the
missing records before that for lost: with `failOnDataLoss` the query fails.
How to confirm: `kafka-get-offsets.sh --time -2` lists the oldest offsets; `slackwater offsets STREAM` the stream's.
What to do: start once with `failOnDataLoss=false`, and set it back to true.
Is the remedy safe: yes, if no record of the partition is wanted that the brokers have removed. An old topic that was
added is read from its beginning, all of it.
References: Structured Streaming + Kafka Integration Guide, option failOnDataLoss
"""

from __future__ import annotations

from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.served import with_problem

CHECK = Check(
    "SW-KAFKA-005",
    Severity.WARNING,
    find=with_problem("partition-added"),
    doc=__doc__,
    text="{it.parts} partitions were added to source {it.source} and do not start at offset 0: "
    "{it.records} records were removed before the stream could read them",
    risk="loss",
    where="{it.place}",
    expected="{it.expected}",
    found="{it.found}",
    at_stake="{it.records} records",
    advice="if these records are not wanted, start once with failOnDataLoss=false, and set it to true again",
    needs=("positions",),
)
