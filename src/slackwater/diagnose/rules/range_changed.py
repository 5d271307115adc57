"""The next batch is planned with another range than the one that the sink has written.

What it finds: the sink has the planned batch, and offsets/ has other offsets for it than the ledger has recorded.
Why it matters: the sink would skip the batch, and the rows of the new range would be missing silently.
How to confirm: compare the offsets of the batch in `slackwater inspect STREAM` and in `slackwater ledger STREAM
--batches 0..`.
What to do: `slackwater plan rebuild STREAM`. It continues after the written batch with its recorded range.
Is the remedy safe: yes; the output is not touched.
References: docs/decisions/0050-one-snapshot-one-number-line.md
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.commands import rebuild_command
from slackwater.core.finding import Finding, Severity
from slackwater.core.snapshot import Snapshot
from slackwater.diagnose.rules.common.facts import range_differs, written
from slackwater.diagnose.rules.common.rule import REFUSED, Rule


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """A stop where the sink has the planned batch, which was recorded with another range."""
    seen = written(snapshot)
    if seen is None or seen.is_ahead or seen.newest != seen.following or not range_differs(snapshot):
        return
    yield RULE.finding(
        f"the sink holds batch {seen.newest}, but the checkpoint has planned batch {seen.newest} with another range; "
        "the sink would skip its rows silently",
        goal="rebuild",
        next=rebuild_command(snapshot),
        expected=f"the range that was recorded for batch {seen.newest}",
        found="another range in offsets/",
    )


RULE = Rule(
    "range-changed",
    Severity.STOP,
    order=232,
    find=find,
    doc=__doc__,
    risk="skip",
    exit_code=REFUSED,
    covers=("LOG-11",),
)
