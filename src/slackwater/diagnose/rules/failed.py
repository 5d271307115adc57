"""The last run failed, and another run may succeed.

What it finds: the last run of the generation in use ended with an error that is not known to be permanent.
Why it matters: the stream does not run; no row is lost or doubled by it.
How to confirm: `slackwater ledger STREAM` shows the run with the error.
What to do: `slackwater run FILE`, after the reason was removed if it is one of the machine.
Is the remedy safe: yes; Spark continues where it was.
References: docs/decisions/0036-which-failures-are-tried-again.md
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.commands import run_command
from slackwater.core.finding import Finding, Severity
from slackwater.core.snapshot import Snapshot
from slackwater.diagnose.rules.common.facts import failed_run
from slackwater.diagnose.rules.common.rule import FAILED, Rule


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """A warning where the last run failed for a reason that may have passed."""
    run = failed_run(snapshot)
    if run is not None and run.failure != "permanent":
        reason = f": {run.reason}" if run.reason else ""
        yield RULE.finding(f"the last run failed{reason}", goal="resume", next=run_command(snapshot.stream))


RULE = Rule(
    "failed",
    Severity.WARNING,
    order=260,
    find=find,
    doc=__doc__,
    risk="stuck",
    exit_code=FAILED,
    about="last-run",
)
