"""The sink guarantees only at least once.

What it finds: the sink, by its kind and options, cannot recognise a batch that it has.
Why it matters: a batch that was interrupted after the sink wrote it is written again, so that its rows are there
twice.
How to confirm: `slackwater sinks` shows what each sink guarantees and why.
What to do: nothing where readers drop duplicates; else use a sink that is exactly-once.
Is the remedy safe: a stream with another sink is a new stream with a new name and a new output.
References: docs/decisions/0120-sinks-that-show-nothing.md, docs/sinks.md
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.finding import Finding, Severity
from slackwater.core.snapshot import Snapshot
from slackwater.diagnose.rules.common.facts import sink_kind
from slackwater.diagnose.rules.common.rule import Rule, When


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """A warning where a restart can double rows."""
    delivery = snapshot.output.delivery
    if delivery is not None and delivery.guarantee == "at-least-once":
        yield RULE.finding(
            f"the {sink_kind(snapshot)} sink writes at least once, so that a restart can double rows: {delivery.reason}"
        )


RULE = Rule(
    "at-least-once",
    Severity.WARNING,
    order=430,
    find=find,
    doc=__doc__,
    risk="duplicate",
    when=When.ALWAYS,
    covers=(
        "SINK-03",
        "SINK-04",
        "SINK-05",
    ),
    on_output=True,
)
