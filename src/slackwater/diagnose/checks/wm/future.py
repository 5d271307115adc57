"""The watermark is ahead of the clock.

What it finds: a batch has moved the watermark more than ten minutes past the time at which it was planned.
Why it matters: one record with a timestamp in the future does that. A watermark never goes back, also not over a
restart: until the clock has reached it, every row with a correct time is dropped as late, silently.
How to confirm: compare watermark and time of the batches in `slackwater inspect STREAM`.
What to do: filter out rows with times in the future before `withWatermark`, then process the batches from the one that
the finding names again: `slackwater plan replay STREAM --from batch:N`.
Is the remedy safe: the plan shows what is cut out of the output, and keeps it for the undo. Without the filter the same
record moves the watermark again. To edit the watermark in the logs leaves state that was dropped already.
References: Structured Streaming Programming Guide, "Handling Late Data and Watermarking"
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.core.units import duration_text, utc_text
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.commands import replay_from

_CLOCKS_DIFFER_MS = 10 * 60 * 1000
"""Clocks of producers and of the driver may differ by so much."""


class Future(NamedTuple):
    """The first batch after which the watermark was ahead, that watermark, the batch's time, and the difference."""

    batch: int
    watermark: str
    time: str
    ahead: str


def find(facts: Facts) -> Iterator[Future]:
    """The batch that moved the watermark past its own time, where the newest watermark is still ahead."""
    ahead = None
    for line in facts.checkpoint.report.batches:
        if line.timestamp_ms is None:
            continue
        watermark = max(line.watermark_ms or 0, line.next_watermark_ms or 0)
        if watermark <= line.timestamp_ms + _CLOCKS_DIFFER_MS:
            ahead = None
        elif ahead is None:
            ahead = line.id, watermark, line.timestamp_ms
    if ahead is not None:
        batch, watermark, time = ahead
        yield Future(batch, utc_text(watermark), utc_text(time), duration_text(watermark - time))


CHECK = Check(
    "SW-WM-006",
    Severity.WARNING,
    find=find,
    doc=__doc__,
    text="batch {it.batch} has moved the watermark {it.ahead} past the clock: rows with earlier times are dropped "
    "as late, silently",
    risk="loss",
    goal="replay",
    where="{facts.checkpoint.location}/commits/{it.batch}",
    expected="a watermark up to {it.time}",
    found="{it.watermark}",
    next=lambda facts, it: replay_from(facts, it.batch),
    advice="first filter out rows with times in the future, before withWatermark; without the filter they move the "
    "watermark again",
)
