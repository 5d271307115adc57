"""The last start was refused.

What it finds: the last start of the generation in use ended with an error before its query ran, and no run has started
since. What the other findings show is not repeated.
Why it matters: the stream does not run; no row is lost or doubled by it.
How to confirm: start it again: where the reason is still there, the start is refused again and changes nothing.
What to do: what the error named; `slackwater run FILE` once that is done.
Is the remedy safe: each command of the error says what it does before it changes anything.
References: docs/decisions/0230-verdict.md, docs/decisions/0336-a-refused-start-changes-nothing.md
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.commands import run_command
from slackwater.core.finding import Finding, Severity
from slackwater.core.snapshot import Snapshot
from slackwater.diagnose.rules.common.rule import FAILED, Rule


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """A warning with the error and the hint of the refused start."""
    refused = snapshot.last_refusal
    if refused is None or refused.generation != snapshot.generation.number:
        return
    reason, *hints = (refused.reason or refused.failure_code or "").split("\n")
    again = run_command(snapshot.stream)
    advice = "; ".join(hints) or (f"remove the reason, then: {again}" if again else "remove the reason")
    yield RULE.finding(f"the last start was refused: {reason}", advice=advice)


RULE = Rule(
    "start-refused",
    Severity.WARNING,
    order=259,
    find=find,
    doc=__doc__,
    risk="stuck",
    exit_code=FAILED,
    about="last-run",
)
