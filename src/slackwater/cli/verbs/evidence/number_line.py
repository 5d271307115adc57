from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count, pairwise

from slackwater.cli.common.console import mark
from slackwater.cli.verbs.evidence.drawing import Drawing, figure
from slackwater.cli.verbs.evidence.markup import Html
from slackwater.cli.verbs.evidence.model import Evidence, Lane, MarksEntry

MEANINGS = {
    "planned": ("offsets/", "newest batch whose range is fixed"),
    "committed": ("commits/", "newest batch that Spark has finished"),
    "state": ("state/", "newest batch whose state can be loaded everywhere"),
    "written": ("output", "newest batch that the output shows"),
    "recorded": ("ledger", "newest batch whose progress the ledger has"),
}
_COLUMNS_WIDE, _COLUMNS_NARROW = 22, 8
_HEAD, _LANE, _FOOT = 34, 34, 34


def number_line(made: Evidence) -> Html:
    marks = made.marks
    if marks is None or not made.lanes:
        return Html("")
    return figure(
        "number-line",
        "Number line: which batch each place has",
        "; ".join(lines_of(made)),
        lambda drawing: _draw(drawing, made.lanes, marks),
        "Circle: the mark. Bar: batches that are kept. Cross: an entry that is damaged."
        if any(lane.damaged for lane in made.lanes)
        else "Circle: the mark. Bar: batches that are kept.",
    )


def lines_of(made: Evidence) -> Iterator[str]:
    for lane in made.lanes:
        yield f"{lane.name}: {shown(lane)}"
    if made.marks is not None:
        yield f"next: batch {made.marks.next_batch}, {next_words(made.marks)}"


def shown(lane: Lane) -> str:
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


def _draw(drawing: Drawing, lanes: Sequence[Lane], marks: MarksEntry) -> None:
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
