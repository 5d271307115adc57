"""One of several outputs has the next batch, another has not.

What it finds: a run was killed between the outputs of one batch.
Why it matters: it does not; the batch runs again with its planned range, and the output that has it skips it.
How to confirm: `slackwater status STREAM` shows the newest batch of each output.
What to do: `slackwater run FILE`.
Is the remedy safe: yes; each output shows by itself which batches it has.
References: docs/decisions/0150-several-outputs-and-audits.md
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.commands import run_command
from slackwater.core.finding import Finding, Severity
from slackwater.core.snapshot import Snapshot
from slackwater.diagnose.rules.common.facts import outputs_with_next
from slackwater.diagnose.rules.common.rule import Rule, When


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """The outputs that have the interrupted batch, where another lacks it."""
    having, following = outputs_with_next(snapshot), snapshot.marks.next_batch
    if snapshot.marks.planned >= 0 and having and len(having) < len(snapshot.outputs):
        yield RULE.finding(
            f"clean: batch {following} was interrupted between the outputs; it will run again, and be skipped by "
            f"{' and '.join(having)}, which has it",
            goal="resume",
            next=run_command(snapshot.stream),
        )


RULE = Rule(
    "written-in-part",
    Severity.INFO,
    order=301,
    find=find,
    doc=__doc__,
    when=When.IN_ORDER,
)
