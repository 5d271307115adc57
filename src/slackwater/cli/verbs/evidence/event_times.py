from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from slackwater.cli.verbs.evidence.drawing import Drawing, figure
from slackwater.cli.verbs.evidence.markup import Html
from slackwater.cli.verbs.evidence.model import Batch, Evidence
from slackwater.core.units import duration_text, utc_text

_SHOWN, _LINE, _TOP, _FOOT = 16, 20, 10, 28
_HOUR_MS = 3_600_000
_FAR = 20


@dataclass(frozen=True, slots=True)
class _Scale:
    first_ms: int
    last_ms: int
    left: float
    right: float

    def at(self, time_ms: int) -> float:
        """The position of a time; a time outside is at the edge."""
        share = (time_ms - self.first_ms) / max(self.last_ms - self.first_ms, 1)
        return self.left + (self.right - self.left) * min(max(share, 0), 1)

    def outside(self, time_ms: int) -> bool:
        return not self.first_ms <= time_ms <= self.last_ms


def event_times(made: Evidence) -> Html:
    shown = [batch for batch in made.batches if _times(batch)][-_SHOWN:]
    if not shown:
        return Html("")
    return figure(
        "event-times",
        "Event times: the span of each batch's rows, and the watermark that it used",
        _words(shown),
        partial(_draw, batches=shown),
        "Bar: the oldest to the newest event time of the rows that the batch read. Line: its watermark. "
        "Arrow: a time too far away to be drawn. Times are UTC.",
    )


def _times(batch: Batch) -> list[int]:
    """The event times and the watermark; Spark's watermark starts at 0."""
    found = (batch.event_time_min_ms, batch.event_time_max_ms, batch.watermark_ms or None)
    return [time for time in found if time is not None]


def _words(batches: Sequence[Batch]) -> str:
    newest = batches[-1]
    parts = [f"batches {batches[0].batch} to {newest.batch}"]
    times = [time for batch in batches for time in (batch.event_time_min_ms, batch.event_time_max_ms) if time]
    if times:
        parts.append(f"event times from {utc_text(min(times))} to {utc_text(max(times))}")
    else:
        parts.append("the event times of rows are not recorded")
    if newest.watermark_ms:
        parts.append(f"watermark of batch {newest.batch}: {utc_text(newest.watermark_ms)}")
    return "; ".join(parts)


def scale_of(times: Sequence[int]) -> tuple[int, int]:
    known = sorted(times)
    middle, quarter = known[len(known) // 2], len(known) // 4
    reach = _FAR * max(known[-1 - quarter] - known[quarter], _HOUR_MS)
    near = [time for time in known if abs(time - middle) <= reach]
    return near[0], near[-1]


def _draw(drawing: Drawing, batches: Sequence[Batch]) -> None:
    first_ms, last_ms = scale_of([time for batch in batches for time in _times(batch)])
    longest = max(len(str(batch.batch)) for batch in batches)
    scale = _Scale(first_ms, last_ms, max(longest * 9 + 14, 40), drawing.width - 14)
    base = _TOP + _LINE * len(batches)
    for row, batch in enumerate(batches):
        _batch(drawing, batch, scale, _TOP + _LINE * (row + 0.5))
    drawing.stroke(scale.left, base + 2, scale.right, base + 2, "axis")
    _axis(drawing, scale, base)
    drawing.height = base + _FOOT


def _batch(drawing: Drawing, batch: Batch, scale: _Scale, y: float) -> None:
    drawing.words(scale.left - 10, y + 4, batch.batch, "", "end")
    drawing.stroke(scale.left, y, scale.right, y, "guide")
    oldest, newest = batch.event_time_min_ms, batch.event_time_max_ms
    if oldest is not None and newest is not None:
        start, end = scale.at(oldest), scale.at(newest)
        drawing.box(start, y - 5, max(end - start, 3), 10, "span", 3)
        for time in (oldest, newest):
            _arrow(drawing, scale, time, y, "far")
    if batch.watermark_ms:
        x = scale.at(batch.watermark_ms)
        drawing.stroke(x, y - 9, x, y + 9, "watermark")
        _arrow(drawing, scale, batch.watermark_ms, y, "far watermark")


def _arrow(drawing: Drawing, scale: _Scale, time_ms: int, y: float, kind: str) -> None:
    if scale.outside(time_ms):
        x = scale.at(time_ms)
        tip = x + 9 if time_ms > scale.last_ms else x - 9
        drawing.area([(x, y - 6), (x, y + 6), (tip, y)], kind)


def _axis(drawing: Drawing, scale: _Scale, base: float) -> None:
    steps = 4 if drawing.is_wide else 1
    for index in range(steps + 1):
        time_ms = scale.first_ms + (scale.last_ms - scale.first_ms) * index // steps
        x, anchor = scale.at(time_ms), "start" if index == 0 else "end" if index == steps else "middle"
        drawing.stroke(x, base + 2, x, base + 7, "axis")
        drawing.words(x, base + 22, utc_text(time_ms)[:16], "dim", anchor)
        if scale.first_ms == scale.last_ms:
            return


def span_text(batch: Batch) -> str:
    if batch.event_time_min_ms is None or batch.event_time_max_ms is None:
        return "-"
    return duration_text(batch.event_time_max_ms - batch.event_time_min_ms)
