"""The query reads a source that cannot serve rows again.

What it finds: a source of the query is a socket, which is for tests only and not fault-tolerant (programming guide,
section "Input Sources").
Why it matters: the rows of a batch that was interrupted are lost, and a restart or a rebuild cannot read them again.
How to confirm: look for `.format("socket")` in the pipeline.
What to do: read from files or Kafka; for a test start the stream under a new name.
Is the remedy safe: yes. Another source is another stream: it needs a new name and a new output.
References: docs/reference/conformance.md
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.finding import Finding, Severity
from slackwater.core.snapshot import Snapshot
from slackwater.diagnose.rules.common.rule import Rule
from slackwater.sources import kind_described

LOST = "rows of a batch that is interrupted are lost, and a restart or a rebuild cannot read them again"


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """A warning where a source of the query is not fault-tolerant."""
    sources = snapshot.profile.sources if snapshot.profile is not None else ()
    for name in sources:
        if not kind_described(name).serves_again:
            yield RULE.finding(f"source {name} is not fault-tolerant: {LOST}")


RULE = Rule(
    "source-not-fault-tolerant",
    Severity.WARNING,
    order=415,
    find=find,
    doc=__doc__,
    risk="loss",
    about="query",
    from_plan=True,
)
