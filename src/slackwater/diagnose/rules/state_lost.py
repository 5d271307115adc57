"""The next batch needs state that cannot be loaded.

What it finds: state of the newest committed batch is missing or damaged in some operator, partition or store.
Why it matters: Spark would fail with CANNOT_LOAD_STATE_STORE, at every start.
How to confirm: compare committed and state in `slackwater status STREAM`; `slackwater inspect STREAM --operators`
shows each store.
What to do: `slackwater plan rebuild STREAM`. It recomputes the state from the batches that contribute to it.
Is the remedy safe: yes; the sources must still have the rows of these batches, which the plan checks.
References: docs/decisions/0265-all-state-that-a-start-reads.md
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.commands import rebuild_command
from slackwater.core.finding import Finding, Severity
from slackwater.core.snapshot import Snapshot
from slackwater.diagnose.rules.common.facts import state_held, state_is_lost
from slackwater.diagnose.rules.common.rule import REFUSED, Rule


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """A stop where the state that can be loaded is older than the newest committed batch."""
    if not state_is_lost(snapshot):
        return
    held, following = state_held(snapshot), snapshot.marks.next_batch
    loadable = f"can be loaded up to batch {held} only" if held >= 0 else "cannot be loaded"
    yield RULE.finding(
        f"batch {following} needs the state of batch {following - 1}, which {loadable}",
        goal="rebuild",
        next=rebuild_command(snapshot),
        where=snapshot.generation.location,
        expected=f"state of batch {following - 1}",
        found=f"state of batch {held}" if held >= 0 else "no state",
    )


RULE = Rule(
    "state-lost",
    Severity.STOP,
    order=240,
    find=find,
    doc=__doc__,
    risk="stuck",
    exit_code=REFUSED,
    covers=(
        "STATE-01",
        "STATE-03",
        "STATE-04",
        "STATE-13",
    ),
)
