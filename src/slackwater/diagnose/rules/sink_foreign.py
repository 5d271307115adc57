"""The output holds batches of which the stream has no record.

What it finds: the sink shows batches, and neither the ledger nor the checkpoint has any batch of the stream.
Why it matters: the sink would skip the stream's own first batches silently, because it has their ids.
How to confirm: `slackwater ledger STREAM --batches 0..` is empty, and written in `slackwater status STREAM` is not.
What to do: give the stream an output of its own, or move this output away.
Is the remedy safe: yes; nothing that the output holds is touched.
References: docs/decisions/0262-an-output-of-its-own.md
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.finding import Finding, Severity
from slackwater.core.snapshot import Snapshot
from slackwater.core.units import batch_range
from slackwater.diagnose.rules.common.facts import is_known, location_of, written
from slackwater.diagnose.rules.common.rule import REFUSED, Rule


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """A stop where the sink has batches, and nothing is known of any batch of the stream."""
    seen = written(snapshot)
    if seen is None or not seen.is_ahead or is_known(snapshot):
        return
    yield RULE.finding(
        f"the output already holds {batch_range(0, seen.newest)}, of which this stream has no record; the sink would "
        f"skip the stream's own {batch_range(seen.following, seen.newest)} silently",
        advice="give the stream an output directory of its own, or move this one away",
        where=location_of(snapshot, seen.newest),
        expected=f"written at most {seen.following if seen.next_is_planned else seen.following - 1}",
        found=f"written {seen.newest}",
    )


RULE = Rule(
    "sink-foreign",
    Severity.STOP,
    order=231,
    find=find,
    doc=__doc__,
    risk="skip",
    exit_code=REFUSED,
    covers=("SHARE-04",),
    on_output=True,
)
