"""The newest batch in the sink cannot be read.

What it finds: the manifest, log, marker or snapshot that shows the newest written batch cannot be parsed. The finding
has the code of the error that the sink reported, such as `manifest-unreadable`.
Why it matters: which batches the output has is unknown, so that rows could be lost or doubled.
How to confirm: `slackwater status STREAM` names the file, what was expected and what was found.
What to do: put a damaged entry of a file sink's manifest aside, and have the batch written again: by
`slackwater run FILE` where the checkpoint has not committed the batch, else by `slackwater plan rebuild STREAM`.
Restore any other file from a backup.
Is the remedy safe: yes; the damaged file is kept. A backup must be as new as the output: an older one is reported as
another finding.
References: docs/decisions/0050-one-snapshot-one-number-line.md
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.commands import rebuild_command, run_command
from slackwater.core.finding import Finding, Severity
from slackwater.core.snapshot import Snapshot, Unreadable
from slackwater.diagnose.rules.common.rule import DAMAGED, Rule


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """A stop where the output should show which batch was written last, and cannot be parsed."""
    problem = snapshot.output.unreadable
    if problem is not None:
        yield RULE.finding(
            f"the batch that was written last is unknown: {problem.text}",
            code=problem.code,
            advice=_advice(snapshot, problem),
            where=problem.where,
            expected=problem.expected,
            found=problem.found,
        )


def _advice(snapshot: Snapshot, problem: Unreadable) -> str:
    aside = problem.aside
    if aside is None:
        return problem.hint or "restore the file from a backup"
    is_committed = snapshot.marks.committed >= aside.batch
    again = rebuild_command(snapshot) if is_committed else run_command(snapshot.stream) or "start the program again"
    return f"{aside.command}, then: {again}"


RULE = Rule(
    "sink-unreadable",
    Severity.STOP,
    order=200,
    find=find,
    doc=__doc__,
    risk="loss",
    exit_code=DAMAGED,
    on_output=True,
)
