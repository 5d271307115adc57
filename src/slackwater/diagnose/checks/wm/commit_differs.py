"""A batch was planned with another watermark than the commit before it has.

What it finds: the entry of a batch in `offsets/` and that of the batch before it in `commits/` have different
watermarks. Spark writes the same number into both, also across restarts: one was edited or copied.
Why it matters: what is late, and which windows were written, does not follow from the recorded watermarks any more. If
it is the newest batch, the next one may count late rows, or drop rows that are in time.
How to confirm: `slackwater inspect LOCATION` shows the watermarks of each batch.
What to do: the neighbours show which entry is wrong: watermarks only grow. Restore that entry from a copy of the
checkpoint.
Is the remedy safe: yes. An older entry is read by a rollback only; of the newest batch, compare its output first.
References: Structured Streaming Programming Guide, "Handling Late Data and Watermarking"
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.core.units import utc_text
from slackwater.diagnose.checks.common.check import Check


class Differs(NamedTuple):
    """A batch with the watermark that it was planned with, and the batch before it with the one in its commit."""

    batch: int
    before: int
    planned: str
    committed: str


def find(facts: Facts) -> Iterator[Differs]:
    """The newest pair of consecutive batches. A plan of Slackwater's may set watermarks: recorded streams are left."""
    if not facts.recorded:
        yield from [*_pairs(facts)][-1:]


def _pairs(facts: Facts) -> Iterator[Differs]:
    for earlier, later in pairwise(facts.checkpoint.report.batches):
        committed, planned = earlier.next_watermark_ms, later.watermark_ms
        # Entries without metadata are of continuous processing, which has no watermark.
        known = committed is not None and planned is not None and later.timestamp_ms is not None
        if known and later.id == earlier.id + 1 and committed != planned:
            yield Differs(later.id, earlier.id, _text(planned or 0), _text(committed or 0))


def _text(milliseconds: int) -> str:
    return f"{utc_text(milliseconds)} ({milliseconds})" if milliseconds else "none"


CHECK = Check(
    "SW-WM-008",
    Severity.WARNING,
    find=find,
    doc=__doc__,
    text="batch {it.batch} was planned with another watermark than the commit of batch {it.before} has: one of the two "
    "entries was edited or copied",
    risk="wrong",
    goal="rebuild",
    certainty="likely",
    where="{facts.checkpoint.location}/offsets/{it.batch}",
    expected="{it.committed}, as in commits/{it.before}",
    found="{it.planned}",
    advice="compare offsets/{it.batch} and commits/{it.before} with a copy of the checkpoint",
)
