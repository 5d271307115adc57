"""The sink keeps no rows over a restart.

What it finds: the sink, by its kind, holds its rows in memory or discards them.
Why it matters: rows of earlier runs are lost with the process.
How to confirm: `slackwater sinks` shows what each sink guarantees and why.
What to do: nothing in a trial; else use a sink that keeps its rows.
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
    """A warning where the output ends with the process."""
    delivery = snapshot.output.delivery
    if delivery is not None and delivery.guarantee == "none":
        yield RULE.finding(f"the {sink_kind(snapshot)} sink keeps no rows over a restart: {delivery.reason}")


RULE = Rule(
    "rows-not-kept",
    Severity.WARNING,
    order=431,
    find=find,
    doc=__doc__,
    risk="loss",
    when=When.ALWAYS,
)
