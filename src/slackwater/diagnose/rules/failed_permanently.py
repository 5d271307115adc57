"""The last run failed, and the same run would fail again.

What it finds: the last run of the generation in use ended with an error that repeats as long as its cause is there:
changed operators or sources, damaged state, a function that fails, a query that Spark does not accept.
Why it matters: the stream does not run until the cause is removed; no row is lost or doubled by it.
How to confirm: `slackwater ledger STREAM` shows the run with the error.
What to do: correct the pipeline, then `slackwater run FILE`; of state that does not fit, `slackwater plan rebuild
STREAM`.
Is the remedy safe: yes; a rebuild leaves the output as it is and keeps the old checkpoint for the undo.
References: docs/decisions/0036-which-failures-are-tried-again.md
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.commands import rebuild_command, run_command
from slackwater.core.finding import Finding, Severity
from slackwater.core.reference import split_reference
from slackwater.core.snapshot import Snapshot
from slackwater.diagnose.rules.common.facts import FAILURES, failed_run
from slackwater.diagnose.rules.common.rule import FAILED, Rule


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """A warning where the last run failed for a reason that is still there."""
    run, stream = failed_run(snapshot), snapshot.stream
    if run is None or run.failure != "permanent":
        return
    meaning, goal = FAILURES.get(run.failure_code or "", FAILURES["unknown"])
    reason = f": {run.reason}" if run.reason else ""
    file = split_reference(stream.pipeline_file)[0] or "the pipeline"
    yield RULE.finding(
        f"the last run failed and would fail again: {meaning}{reason}",
        goal=goal,
        next=rebuild_command(snapshot) if goal else None,
        advice=None if goal else f"correct {file}, then run it: {run_command(stream)}",
    )


RULE = Rule(
    "failed-permanently",
    Severity.WARNING,
    order=261,
    find=find,
    doc=__doc__,
    risk="stuck",
    exit_code=FAILED,
    about="last-run",
)
