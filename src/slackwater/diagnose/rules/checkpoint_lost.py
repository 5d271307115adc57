"""The checkpoint holds no batch, but the stream has run.

What it finds: the ledger has recorded batches, and offsets/ of the checkpoint is empty or does not exist.
Why it matters: Spark would count from batch 0 again. A sink that knows batch ids skips the new batches silently; any
other sink gets their rows a second time.
How to confirm: `slackwater inspect STREAM` and `slackwater ledger STREAM --batches 0..`.
What to do: `slackwater plan rebuild STREAM`. It builds a checkpoint from the recorded ranges, under the original ids.
Is the remedy safe: yes; the new checkpoint is verified before it is used, and the output is not touched.
References: docs/decisions/0056-what-a-lost-ledger-is-restored-from.md
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.commands import rebuild_command
from slackwater.core.finding import Finding, Severity
from slackwater.core.snapshot import Snapshot
from slackwater.diagnose.rules.common.facts import lost_batch
from slackwater.diagnose.rules.common.rule import REFUSED, Rule


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """A stop where batches are recorded and the checkpoint holds none."""
    newest = lost_batch(snapshot)
    if newest is None:
        return
    skips = snapshot.marks.written is not None or snapshot.output.batches_skipped
    yield RULE.finding(
        f"the checkpoint holds no batch, but batches up to {newest} were run; a start would count from 0 again and "
        + ("the sink would skip the new batches" if skips else "write their rows a second time"),
        risk="skip" if skips else "duplicate",
        goal="rebuild",
        next=rebuild_command(snapshot),
        where=snapshot.generation.location,
        expected=f"batch {newest} in offsets/",
        found="none",
    )


RULE = Rule(
    "checkpoint-lost",
    Severity.STOP,
    order=210,
    find=find,
    doc=__doc__,
    risk="skip",
    exit_code=REFUSED,
    covers=("SINK-01",),
)
