"""HTML by hand, and the page's charts: SVG drawings, each in two widths, for a screen and for a phone."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count, pairwise
from typing import Any

from slackwater.cli.common.console import mark
from slackwater.cli.verbs.evidence.model import Batch, Evidence, Lane, MarksEntry
from slackwater.core.escaping import one_line
from slackwater.core.units import counted, duration_text, utc_text

LONGEST = 1500
"""Characters of a value on a page; the document has all."""


_BACKTICKS = re.compile(r"`([^`]+)`")


WIDE, NARROW = 960, 360
MEANINGS = {
    "planned": ("offsets/", "newest batch whose range is fixed"),
    "committed": ("commits/", "newest batch that Spark has finished"),
    "state": ("state/", "newest batch whose state can be loaded everywhere"),
    "written": ("output", "newest batch that the output shows"),
    "recorded": ("ledger", "newest batch whose progress the ledger has"),
}
_COLUMNS_WIDE, _COLUMNS_NARROW = 22, 8
_HEAD, _LANE, _FOOT = 34, 34, 34
_BATCHES_WIDE, _BATCHES_NARROW = 40, 14
_ROWS, _TIME, _HISTORY_TOP, _GAP, _HISTORY_FOOT = 90, 56, 26, 34, 26
_FLAT = 22
"""The height of a batch without recorded rows."""
_WIDEST = 34
_SHOWN, _TIMES_LINE, _TIMES_TOP, _TIMES_FOOT = 16, 20, 10, 28
_HOUR_MS = 3_600_000
_FAR = 20


class Html(str):
    """Markup; any other string is text."""

    __slots__ = ()


def text(value: object) -> Html:
    """A value as text without control characters; markup stays."""
    return value if isinstance(value, Html) else Html(html.escape(one_line(str(value))))


def prose(value: str | None) -> Html:
    return Html(_BACKTICKS.sub(r"<code>\1</code>", text(value))) if value else Html("")


def join(parts: Iterable[object]) -> Html:
    return Html("".join(text(part) for part in parts))


def element(name: str, *content: object, **attributes: object) -> Html:
    """``class_`` is the attribute ``class``, ``aria_label`` is ``aria-label``."""
    pairs = (f' {key.rstrip("_").replace("_", "-")}="{text(value)}"' for key, value in attributes.items())
    return Html(f"<{name}{''.join(pairs)}>{join(content)}</{name}>")


def section(name: str, title: str, *content: object) -> Html:
    """A section; left out without content."""
    if not any(content):
        return Html("")
    return element("section", element("h2", title, id=name), *content, aria_labelledby=name)


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: Iterable[int] = ()) -> Html:
    """A table that scrolls in its own box. ``numbers`` are columns of numbers."""
    right = frozenset(numbers)
    body = [_row(row, right) for row in rows]
    if not body:
        return Html("")
    heads = (element("th", name, scope="col", class_="number" if at in right else "") for at, name in enumerate(head))
    whole = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *heads)),
        element("tbody", *body),
    )
    return element("div", whole, class_="scroll", role="region", tabindex=0, aria_label=caption)


def _row(row: Sequence[object], right: frozenset[int]) -> Html:
    first, *others = row
    cells = (element("td", cell, class_="number" if at in right else "") for at, cell in enumerate(others, start=1))
    return element("tr", element("th", first, scope="row"), *cells)


def pairs(rows: Iterable[tuple[str, object]]) -> Html:
    """Names with values that are neither ``None`` nor empty."""
    shown = [(name, value) for name, value in rows if value not in (None, "")]
    if not shown:
        return Html("")
    return element("dl", *(element("div", element("dt", name), element("dd", value)) for name, value in shown))


def code(value: object) -> Html:
    return element("code", value)


def json_code(value: Any) -> Html:
    if value is None:
        return text("-")
    shown = value if isinstance(value, str) else json.dumps(value, separators=(", ", ": "))
    return code(shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}... (whole in evidence.json)")


@dataclass(slots=True)
class Drawing:
    width: int
    height: float = 0
    parts: list[Html] = field(default_factory=list)

    @property
    def is_wide(self) -> bool:
        return self.width >= WIDE

    def words(self, x: float, y: float, value: object, kind: str = "", anchor: str = "start") -> None:
        """Draws a text with its baseline at ``y``."""
        self._add("text", value, x=_number(x), y=_number(y), class_=f"w {kind}".strip(), text_anchor=anchor)

    def box(self, x: float, y: float, width: float, height: float, kind: str, radius: float = 2) -> None:
        size = {"width": _number(max(width, 0)), "height": _number(max(height, 0))}
        self._add("rect", x=_number(x), y=_number(y), rx=_number(radius), class_=kind, **size)

    def dot(self, x: float, y: float, radius: float, kind: str) -> None:
        self._add("circle", cx=_number(x), cy=_number(y), r=_number(radius), class_=kind)

    def stroke(self, x: float, y: float, to_x: float, to_y: float, kind: str) -> None:
        self._add("line", x1=_number(x), y1=_number(y), x2=_number(to_x), y2=_number(to_y), class_=kind)

    def area(self, points: list[tuple[float, float]], kind: str) -> None:
        self._add("polygon", points=" ".join(f"{_number(x)},{_number(y)}" for x, y in points), class_=kind)

    def _add(self, name: str, *content: object, **attributes: object) -> None:
        self.parts.append(element(name, *content, **attributes))


def figure(name: str, title: str, description: str, draw: Callable[[Drawing], None], caption: object = "") -> Html:
    sizes = (("wide", WIDE), ("narrow", NARROW))
    drawn = [_svg(f"{name}-{size}", title, description, draw, width, size) for size, width in sizes]
    return element("figure", *drawn, element("figcaption", caption) if caption else "")


def _svg(name: str, title: str, description: str, draw: Callable[[Drawing], None], width: int, size: str) -> Html:
    drawing = Drawing(width)
    draw(drawing)
    labels = join([element("title", title, id=f"{name}-t"), element("desc", description, id=f"{name}-d")])
    head = f'<svg class="{size}" viewBox="0 0 {width} {_number(drawing.height)}" role="img" '
    return Html(f'{head}aria-labelledby="{text(name)}-t {text(name)}-d">{labels}{join(drawing.parts)}</svg>')


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def number_line(made: Evidence) -> Html:
    marks = made.marks
    if marks is None or not made.lanes:
        return Html("")
    return figure(
        "number-line",
        "Number line: which batch each place has",
        "; ".join(lines_of(made)),
        lambda drawing: _draw_number_line(drawing, made.lanes, marks),
        "Circle: the mark. Bar: batches that are kept. Cross: an entry that is damaged."
        if any(lane.damaged for lane in made.lanes)
        else "Circle: the mark. Bar: batches that are kept.",
    )


def lines_of(made: Evidence) -> Iterator[str]:
    for lane in made.lanes:
        yield f"{lane.name}: {lane_words(lane)}"
    if made.marks is not None:
        yield f"next: batch {made.marks.next_batch}, {next_words(made.marks)}"


def lane_words(lane: Lane) -> str:
    if lane.mark is None:
        return "unknown"
    kept = ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in lane.kept[-3:])
    more = "... " if len(lane.kept) > 3 else ""  # noqa: PLR2004 - as many as a line has room for
    damaged = f"; damaged: {', '.join(map(str, lane.damaged[:10]))}" if lane.damaged else ""
    return f"{mark(lane.mark)} (kept: {more}{kept}{damaged})" if kept else mark(lane.mark)


def next_words(marks: MarksEntry) -> str:
    return "planned already: Spark runs it again with the same range" if marks.next_planned else "not planned yet"


def columns(lanes: Sequence[Lane], following: int, room: int) -> list[int]:
    """The drawn batches: all marks, the first kept batch, and as many more as fit."""
    ends = {lane.mark for lane in lanes if lane.mark is not None and lane.mark >= 0}
    firsts = {lane.kept[0][0] for lane in lanes if lane.kept and lane.name != "written"}
    wanted = {following, *ends}
    wanted |= set(sorted(firsts, reverse=True)[: max(room - len(wanted), 0)])
    anchors = sorted(wanted, reverse=True)
    for distance in count(1):
        near = [anchor - distance for anchor in anchors if anchor >= distance]
        if len(wanted) >= room or not near:
            return sorted(wanted)
        for batch in near[: room - len(wanted)]:
            wanted.add(batch)
    return sorted(wanted)


def _draw_number_line(drawing: Drawing, lanes: Sequence[Lane], marks: MarksEntry) -> None:
    wide = drawing.is_wide
    ids = columns(lanes, marks.next_batch, _COLUMNS_WIDE if wide else _COLUMNS_NARROW)
    left = 158 if wide else 82
    step = (drawing.width - left) / max(len(ids), 1)
    at = {batch: left + step * (index + 0.5) for index, batch in enumerate(ids)}
    drawing.height = _HEAD + _LANE * len(lanes) + _FOOT
    _next_column(drawing, marks, at[marks.next_batch], step)
    _heads(drawing, at, step)
    for row, lane in enumerate(lanes):
        _lane(drawing, lane, at, _HEAD + _LANE * (row + 0.5), step)


def _next_column(drawing: Drawing, marks: MarksEntry, x: float, step: float) -> None:
    bottom = drawing.height - _FOOT
    drawing.box(x - step / 2, 4, step, bottom, "next", 5)
    words = "next: runs again" if marks.next_planned else "next: not planned"
    # A label at the edge would be cut off.
    room = drawing.width - x
    anchor = "end" if room < 70 else "middle"  # noqa: PLR2004 - half of the label's width
    drawing.words(drawing.width - 2 if anchor == "end" else x, bottom + 22, words, "strong", anchor)


def _heads(drawing: Drawing, at: dict[int, float], step: float) -> None:
    longest = max(len(str(batch)) for batch in at)
    every = max(1, -(-(longest * 9 + 6) // int(step)))
    for index, (batch, x) in enumerate(reversed(at.items())):
        if index % every == 0:
            drawing.words(x, 24, batch, "", "middle")
    for before, after in pairwise(at):
        if after != before + 1:
            x = (at[before] + at[after]) / 2
            drawing.stroke(x, 12, x, drawing.height - _FOOT, "break")


def _lane(drawing: Drawing, lane: Lane, at: dict[int, float], y: float, step: float) -> None:
    place, _ = MEANINGS[lane.name]
    drawing.words(0, y + 4, lane.name, "strong")
    if drawing.is_wide:
        drawing.words(90, y + 4, place, "dim")
    if lane.mark is None:
        drawing.words(min(at.values()) - step / 2 + 8, y + 4, "unknown", "dim")
        return
    for batch, x in at.items():
        if not _kept(batch, lane.kept):
            drawing.dot(x, y, 2.5, "absent")
    for first, last in _bars(list(at), lane):
        drawing.box(at[first] - 6, y - 6, at[last] - at[first] + 12, 12, f"lane {lane.name}", 6)
    if lane.mark in at:
        drawing.dot(at[lane.mark], y, 10, f"mark {lane.name}")
    for x in (at[batch] for batch in lane.damaged if batch in at):
        drawing.stroke(x - 9, y - 9, x + 9, y + 9, "damaged")
        drawing.stroke(x - 9, y + 9, x + 9, y - 9, "damaged")


def _bars(ids: Sequence[int], lane: Lane) -> Iterator[tuple[int, int]]:
    run: list[int] = []
    for batch in ids:
        if run and (not _kept(batch, lane.kept) or not _joined(run[-1], batch, lane.kept)):
            yield run[0], run[-1]
            run = []
        if _kept(batch, lane.kept):
            run.append(batch)
    if run:
        yield run[0], run[-1]


def _kept(batch: int, kept: Iterable[tuple[int, int]]) -> bool:
    return any(first <= batch <= last for first, last in kept)


def _joined(before: int, after: int, kept: Iterable[tuple[int, int]]) -> bool:
    return any(first <= before and after <= last for first, last in kept)


def batch_history(made: Evidence) -> Html:
    if not made.batches:
        return Html("")
    return figure(
        "batch-history",
        "Batch history: rows read and duration of the newest batches",
        _history_words(made.batches[-_BATCHES_WIDE:]),
        partial(_draw_history, batches=made.batches),
        "Solid: committed. Outlined: not committed in this checkpoint. A dash: rows or time are not recorded.",
    )


def _history_words(batches: Sequence[Batch]) -> str:
    rows = [batch.input_rows for batch in batches if batch.input_rows is not None]
    times = [batch.duration_ms for batch in batches if batch.duration_ms is not None]
    uncommitted = [str(batch.batch) for batch in batches if not batch.committed]
    parts = [f"{counted(len(batches), 'batch').replace('batchs', 'batches')}, newest {batches[-1].batch}"]
    if rows:
        parts.append(f"rows read from {min(rows):,} to {max(rows):,}")
    if times:
        parts.append(f"duration from {duration_text(min(times))} to {duration_text(max(times))}")
    parts.append(f"not committed: {', '.join(uncommitted)}" if uncommitted else "all are committed")
    return "; ".join(parts)


def _draw_history(drawing: Drawing, batches: Sequence[Batch]) -> None:
    shown = batches[-(_BATCHES_WIDE if drawing.is_wide else _BATCHES_NARROW) :]
    timed = any(batch.duration_ms is not None for batch in shown)
    step = min((drawing.width - 4) / len(shown), 60)
    at = [2 + step * (index + 0.5) for index in range(len(shown))]
    base = _HISTORY_TOP + _ROWS
    rows = [batch.input_rows for batch in shown]
    known = [value for value in rows if value is not None]
    drawing.words(2, 15, f"rows read, at most {max(known):,}" if known else "rows read: not recorded", "dim")
    if known:
        _history_bars(drawing, shown, rows, at, base, _ROWS, step)
    else:
        base = _HISTORY_TOP + _FLAT
        _history_bars(drawing, shown, [1] * len(shown), at, base, _FLAT, step)
    if timed:
        top, base = base + _GAP, base + _GAP + _TIME
        times = [batch.duration_ms for batch in shown]
        longest = max(value for value in times if value is not None)
        drawing.words(2, top - 8, f"duration, at most {duration_text(longest)}", "dim")
        _history_bars(drawing, shown, times, at, base, _TIME, step)
    longest_id = len(str(shown[-1].batch))
    every = max(1, -(-(longest_id * 9 + 8) // max(int(step), 1)))
    for index, (batch, x) in enumerate(zip(reversed(shown), reversed(at), strict=True)):
        if index % every == 0:
            drawing.words(x, base + 18, batch.batch, "", "middle")
    drawing.height = base + _HISTORY_FOOT


def _history_bars(
    drawing: Drawing,
    batches: Sequence[Batch],
    values: Sequence[int | None],
    at: Sequence[float],
    base: float,
    height: float,
    step: float,
) -> None:
    most = max((value for value in values if value is not None), default=0)
    width = min(step * 0.7, _WIDEST)
    drawing.stroke(0, base, drawing.width, base, "axis")
    for batch, value, x in zip(batches, values, at, strict=True):
        if value is None:
            drawing.stroke(x - width / 4, base - 4, x + width / 4, base - 4, "axis")
        elif batch.committed or value:
            # A batch without a row is a line on the axis.
            tall = max(height * value / most, 2) if most else 2
            drawing.box(x - width / 2, base - tall, width, tall, "bar" if batch.committed else "bar open")
        if not batch.committed and not value:
            drawing.box(x - width / 2, base - height / 3, width, height / 3, "bar open")


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
        _times_words(shown),
        partial(_draw_times, batches=shown),
        "Bar: the oldest to the newest event time of the rows that the batch read. Line: its watermark. "
        "Arrow: a time too far away to be drawn. Times are UTC.",
    )


def _times(batch: Batch) -> list[int]:
    """The event times and the watermark; Spark's watermark starts at 0."""
    found = (batch.event_time_min_ms, batch.event_time_max_ms, batch.watermark_ms or None)
    return [time for time in found if time is not None]


def _times_words(batches: Sequence[Batch]) -> str:
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


def _draw_times(drawing: Drawing, batches: Sequence[Batch]) -> None:
    first_ms, last_ms = scale_of([time for batch in batches for time in _times(batch)])
    longest = max(len(str(batch.batch)) for batch in batches)
    scale = _Scale(first_ms, last_ms, max(longest * 9 + 14, 40), drawing.width - 14)
    base = _TIMES_TOP + _TIMES_LINE * len(batches)
    for row, batch in enumerate(batches):
        _times_of_batch(drawing, batch, scale, _TIMES_TOP + _TIMES_LINE * (row + 0.5))
    drawing.stroke(scale.left, base + 2, scale.right, base + 2, "axis")
    _axis(drawing, scale, base)
    drawing.height = base + _TIMES_FOOT


def _times_of_batch(drawing: Drawing, batch: Batch, scale: _Scale, y: float) -> None:
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
