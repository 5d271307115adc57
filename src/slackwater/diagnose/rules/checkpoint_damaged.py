"""A file of the checkpoint is missing or damaged.

What it finds: a file that the next start reads is missing, torn, differs from its checksum or has an unknown format.
Why it matters: Spark would fail at the start, or some batches later when it first reads the file.
How to confirm: `slackwater inspect STREAM` lists all damage.
What to do: `slackwater plan resume STREAM` where only logs are damaged: what they lack comes from the ledger, and the
state that is there is copied. Else `slackwater plan rebuild STREAM`, or restore the file from a backup of the same
checkpoint.
Is the remedy safe: yes; the damaged checkpoint is kept as the previous generation, and the undo switches back to it.
References: docs/decisions/0265-all-state-that-a-start-reads.md
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.commands import command, rebuild_command
from slackwater.core.finding import Finding, Severity
from slackwater.core.snapshot import Snapshot
from slackwater.diagnose.rules.common.facts import STATE_FOLDER, and_more, damage, lost_batch, state_is_lost
from slackwater.diagnose.rules.common.rule import DAMAGED, Rule


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """A stop for the first damage, with the number of the others."""
    found = damage(snapshot)
    # A checkpoint without any batch has a finding of its own: checkpoint-lost.
    if not found or lost_batch(snapshot) is not None:
        return
    worst = found[0]
    keeps_state = not state_is_lost(snapshot) and not any(one.path.startswith(STATE_FOLDER) for one in found)
    resumes = keeps_state and snapshot.marks.written is not None
    yield RULE.finding(
        f"the checkpoint is damaged: {worst.clause}{and_more(found, 1)}",
        goal="resume" if resumes else "rebuild",
        next=command("plan", "resume", snapshot.stream.full_name) if resumes else rebuild_command(snapshot),
        where=snapshot.generation.location,
        expected=worst.expected or None,
        found=worst.found or None,
    )


RULE = Rule(
    "checkpoint-damaged",
    Severity.STOP,
    order=211,
    find=find,
    doc=__doc__,
    risk="stuck",
    exit_code=DAMAGED,
    covers=("STATE-02", "STATE-05", "STATE-08"),
)
