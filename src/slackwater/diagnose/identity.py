"""Whose home and whose output these are: a copied home must not act on the original, nor two streams on one output."""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.model.finding import Finding, Severity
from slackwater.model.snapshot import Snapshot

REFUSED = 5


def identity_findings(snapshot: Snapshot) -> Iterator[Finding]:
    """Stops for a home or an output that belongs to another stream or home."""
    if snapshot.home != "here":
        yield home_finding(snapshot.home, snapshot.home_was or "another place")
    output = snapshot.output
    if output.owner is not None and output.owner != snapshot.stream.id:
        yield Finding(
            "sink-owned",
            Severity.STOP,
            f"the output belongs to stream {output.owner_name}; the sink would skip batches of a second stream that "
            "writes there",
            risk="skip",
            advice="give the stream an output directory of its own, or move this one away",
            where=output.location,
            expected=f"an output of {snapshot.stream.full_name}",
            found=f"an output of {output.owner_name}",
            exit_code=REFUSED,
        )


def home_finding(place: str, was: str) -> Finding:
    """The home is not where it was made. ``place`` is ``moved`` or ``copied``; ``was`` is its recorded folder."""
    moved = place == "moved"
    return Finding(
        "home-moved" if moved else "home-copied",
        Severity.STOP,
        f"the home was moved here from {was}"
        if moved
        else f"the home is a copy of {was}; what it does would change the original's outputs",
        risk="wrong",
        advice=f"repeat the command with {'--moved' if moved else '--copied'}, if that is so",
        expected=f"a home at {was}",
        exit_code=REFUSED,
    )
