"""A topic was created again.

What it finds: the topic has another id than when the run started that read it. Where no id is recorded: every record
that a partition has before the position of the stream is newer than the batch that was planned up to this position, so
that this batch cannot have read them.
Why it matters: offsets of the new topic start at 0 again. Once it has more records than the old one, the position of
the old one is among them: the query continues there without an error, and never reads the records before it.
How to confirm: `kafka-topics.sh --describe` shows the id of the topic; read the oldest record of the partition and
compare its time with that of the newest batch in `slackwater offsets STREAM`.
What to do: start again at the beginning of the new topic and keep the output: `slackwater plan reset STREAM --from
earliest --output keep`.
Is the remedy safe: yes, if the new topic has no record that the old one had. A topic of a linked cluster has the same
records under the same offsets, and producers that write times of the future look like a new topic: then `slackwater
plan resume STREAM` keeps position and state, in a checkpoint that is not compared with earlier runs.
References: Structured Streaming + Kafka Integration Guide, option failOnDataLoss
"""

from __future__ import annotations

from slackwater.core.commands import reset_command
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.served import with_problem

CHECK = Check(
    "SW-KAFKA-003",
    Severity.STOP,
    find=with_problem("topic-recreated"),
    doc=__doc__,
    text="{it.parts} partitions of source {it.source} are of a topic that was created again: "
    "its records before the position of the stream are never read",
    risk="loss",
    goal="reset",
    certainty="likely",
    where="{it.place}",
    expected="{it.expected}",
    found="{it.found}",
    at_stake="{it.records} records",
    next=lambda facts, _: reset_command(facts.snapshot, "--output", "keep"),
    needs=("positions",),
    also=("KAFKA-02",),
    refuses_start=True,
)
