"""An idle source keeps the watermark where it is.

What it finds: over the last ten batches with rows the watermark has not moved, and one of several sources had no rows.
Why it matters: with the policy `min` the slowest source decides. Windows are not closed, nothing is written in append
mode, and the state grows.
How to confirm: `slackwater ledger STREAM --batches 0..` shows the watermark and the rows of each batch.
What to do: let the idle source have a record from time to time, or read it in a query of its own.
Is the remedy safe: yes. The policy `max` is used by a new checkpoint only, and drops rows of the slower source as late.
References: Structured Streaming Programming Guide, "Policy for handling multiple watermarks"
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check

_BATCHES = 10


class Idle(NamedTuple):
    """The source without rows, and the first and the last of the batches that were looked at."""

    source: str
    first: int
    last: int


def find(facts: Facts) -> Iterator[Idle]:
    """Sources without a row where others had some, and the watermark is the same in all batches."""
    batches = [one for one in facts.batches if one.input_rows][-_BATCHES:]
    if len(batches) < _BATCHES or len({one.watermark_ms for one in batches}) > 1 or batches[0].watermark_ms is None:
        return
    # Sources are compared by position, so that their number must not have changed.
    count = {len(one.sources) for one in batches}
    if len(count) != 1:
        return
    for index in range(count.pop()):
        if not any(one.sources[index].input_rows for one in batches):
            yield Idle(batches[-1].sources[index].description, batches[0].batch_id, batches[-1].batch_id)


CHECK = Check(
    "SW-WM-003",
    Severity.WARNING,
    find=find,
    doc=__doc__,
    text="the watermark has not moved from batch {it.first} to {it.last}, and source {it.source} had no rows in them",
    risk="stuck",
    certainty="likely",
    where="{it.source}",
    expected="rows, which move the watermark",
    found="no rows",
    advice="let the source have a record from time to time, or read it in a query of its own",
    needs=("history",),
)
