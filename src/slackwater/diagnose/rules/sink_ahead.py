"""The sink has batches that the checkpoint has not planned.

What it finds: the newest batch of the sink is newer than the next batch, or is the next batch and that is not
planned: the checkpoint was restored from an older copy, or cut back.
Why it matters: Spark would give these ids to new rows, and the sink would skip them silently.
How to confirm: compare planned and written in `slackwater status STREAM`.
What to do: `slackwater plan rebuild STREAM`. It continues after the newest written batch.
Is the remedy safe: yes; the output is not touched, and no id is used for other rows.
References: docs/decisions/0050-one-snapshot-one-number-line.md
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.commands import rebuild_command
from slackwater.core.finding import Finding, Severity
from slackwater.core.snapshot import Snapshot
from slackwater.core.units import batch_range
from slackwater.diagnose.rules.common.facts import is_known, location_of, written
from slackwater.diagnose.rules.common.rule import REFUSED, Rule


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """A stop where the sink has batches that a known stream has not planned."""
    seen = written(snapshot)
    if seen is None or not seen.is_ahead or not is_known(snapshot):
        return
    yield RULE.finding(
        f"the sink is ahead of the checkpoint: it would skip {batch_range(seen.following, seen.newest)} silently",
        goal="rebuild",
        next=rebuild_command(snapshot),
        where=location_of(snapshot, seen.newest),
        expected=f"written at most {seen.following if seen.next_is_planned else seen.following - 1}",
        found=f"written {seen.newest}",
    )


RULE = Rule(
    "sink-ahead",
    Severity.STOP,
    order=230,
    find=find,
    doc=__doc__,
    risk="skip",
    exit_code=REFUSED,
    covers=(
        "FSINK-04",
        "SHARE-04",
        "SINK-01",
        "SINK-06",
    ),
    on_output=True,
)
