"""The stream is running, or an operation on it is in progress.

What it finds: a process holds the lease of the stream.
Why it matters: marks and files change while a process writes, so nothing else is compared until it has ended.
How to confirm: `slackwater status STREAM` shows the host and the process that hold the lease.
What to do: nothing; `slackwater stop STREAM` ends a run after its batch.
Is the remedy safe: yes; a run that is stopped this way finishes and commits its batch.
References: docs/decisions/0041-leases-live-in-the-ledger.md
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.finding import Finding, Severity
from slackwater.core.snapshot import Snapshot
from slackwater.diagnose.rules.common.rule import Rule, When


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """What holds the lease."""
    if snapshot.holder is not None:
        yield RULE.finding("running" if snapshot.holder == "run" else f"{snapshot.holder} is in progress")


RULE = Rule(
    "running",
    Severity.INFO,
    order=130,
    find=find,
    doc=__doc__,
    when=When.ALWAYS,
)
