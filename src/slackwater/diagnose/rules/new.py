"""No batch has been planned yet.

What it finds: the checkpoint and the ledger have no batch of the stream.
Why it matters: it does not; the first batch will be batch 0.
How to confirm: `slackwater inspect STREAM` shows an empty checkpoint.
What to do: `slackwater run FILE`.
Is the remedy safe: yes.
References: docs/decisions/0050-one-snapshot-one-number-line.md
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.commands import run_command
from slackwater.core.finding import Finding, Severity
from slackwater.core.snapshot import Snapshot
from slackwater.diagnose.rules.common.rule import Rule, When


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """A stream without any batch."""
    if snapshot.marks.planned < 0:
        yield RULE.finding("no batch has been planned yet", next=run_command(snapshot.stream))


RULE = Rule(
    "new",
    Severity.INFO,
    order=300,
    find=find,
    doc=__doc__,
    when=When.IN_ORDER,
)
