"""The sink's marker was lost or set back, and the output may have rows that it does not show.

What it finds: the marker shows an older batch than the stream is known to have written, or none.
Why it matters: batches that the output has would be written again, so that their rows are there twice. Every other
finding compares with this marker, so nothing else is compared.
How to confirm: compare the marker with the newest batches of `slackwater ledger STREAM --batches 0..`.
What to do: `slackwater plan reset STREAM --from earliest --output swap` where the sink can swap; else restore the
marker from a backup made together with the output's, or empty the output and plan as the finding says.
Is the remedy safe: a swap keeps the old rows for the undo. Emptying the output by hand cannot be undone.
References: docs/decisions/0246-a-marker-that-was-lost.md, docs/decisions/0275-a-reset-without-a-marker.md
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.commands import rebuild_command, reset_command
from slackwater.core.finding import Finding, Severity
from slackwater.core.snapshot import Snapshot
from slackwater.diagnose.rules.common.rule import REFUSED, Rule, When


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """A stop where the output may have rows that its marker does not show: only writing all of them again is right."""
    unmarked = snapshot.output.unmarked
    if unmarked is None or snapshot.holder is not None:
        return
    swaps = snapshot.can_swap_unmarked
    shown = f"batch {unmarked.marked}" if unmarked.marked >= 0 else "no batch"
    again = (
        rebuild_command(snapshot, "--at", "earliest")
        if unmarked.shows_rows
        else reset_command(snapshot, "--output", "keep")
    )
    yield RULE.finding(
        f"the sink's marker shows {shown}, but the stream has written later ones, and the output may have their rows; "
        "written again, they would be there twice",
        goal="rebuild" if unmarked.shows_rows and not swaps else "reset",
        next=reset_command(snapshot, "--output", "swap") if swaps else None,
        advice=("or " if swaps else "") + "restore the marker from a backup that was made together with the output's; "
        f"or {unmarked.emptied}, then: {again}",
        where=unmarked.location,
        expected=f"batch {unmarked.finished} or later" if unmarked.finished >= 0 else "the stream as its owner",
        found=shown,
    )


RULE = Rule(
    "sink-marker-lost",
    Severity.STOP,
    order=140,
    find=find,
    doc=__doc__,
    risk="duplicate",
    exit_code=REFUSED,
    when=When.ALWAYS,
    about="marker",
    covers=(
        "FSINK-01",
        "SINK-02",
    ),
    on_output=True,
)
