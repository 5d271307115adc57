"""A partition ends before the position of the stream.

What it finds: the next offset that the stream would read is after the end of the partition: the topic was created
again, or the brokers are those of another cluster.
Why it matters: with `failOnDataLoss` the query fails. Without it Spark takes the lower end as its position: records
that were written to the new topic until then are never read.
How to confirm: `kafka-get-offsets.sh --time -1` lists the ends; `slackwater offsets STREAM` the stream's positions.
What to do: start again at the beginning of the new topic and keep the output: `slackwater plan reset STREAM --from
earliest --output keep`.
Is the remedy safe: yes, if the new topic has no record that the old one had. A broker that lags behind reports a lower
end for a short time: compare again before anything is changed.
References: Structured Streaming + Kafka Integration Guide, option failOnDataLoss; KAFKA-7703
"""

from __future__ import annotations

from slackwater.core.commands import reset_command
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.served import with_problem

CHECK = Check(
    "SW-KAFKA-002",
    Severity.STOP,
    find=with_problem("behind-position"),
    doc=__doc__,
    text="{it.parts} partitions of source {it.source} end before the position of the stream: "
    "the topic was created again, or this is another cluster",
    risk="loss",
    goal="reset",
    where="{it.place}",
    expected="{it.expected}",
    found="{it.found}",
    next=lambda facts, _: reset_command(facts.snapshot, "--output", "keep"),
    needs=("positions",),
    also=("KAFKA-14",),
)
