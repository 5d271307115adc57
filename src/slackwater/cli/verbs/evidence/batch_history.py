from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from slackwater.cli.verbs.evidence.drawing import Drawing, figure
from slackwater.cli.verbs.evidence.markup import Html
from slackwater.cli.verbs.evidence.model import Batch, Evidence
from slackwater.core.units import counted, duration_text

_WIDE, _NARROW = 40, 14
_ROWS, _TIME, _TOP, _GAP, _FOOT = 90, 56, 26, 34, 26
_FLAT = 22
"""The height of a batch without recorded rows."""
_WIDEST = 34


def batch_history(made: Evidence) -> Html:
    if not made.batches:
        return Html("")
    return figure(
        "batch-history",
        "Batch history: rows read and duration of the newest batches",
        _words(made.batches[-_WIDE:]),
        partial(_draw, batches=made.batches),
        "Solid: committed. Outlined: not committed in this checkpoint. A dash: rows or time are not recorded.",
    )


def _words(batches: Sequence[Batch]) -> str:
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


def _draw(drawing: Drawing, batches: Sequence[Batch]) -> None:
    shown = batches[-(_WIDE if drawing.is_wide else _NARROW) :]
    timed = any(batch.duration_ms is not None for batch in shown)
    step = min((drawing.width - 4) / len(shown), 60)
    at = [2 + step * (index + 0.5) for index in range(len(shown))]
    base = _TOP + _ROWS
    rows = [batch.input_rows for batch in shown]
    known = [value for value in rows if value is not None]
    drawing.words(2, 15, f"rows read, at most {max(known):,}" if known else "rows read: not recorded", "dim")
    if known:
        _bars(drawing, shown, rows, at, base, _ROWS, step)
    else:
        base = _TOP + _FLAT
        _bars(drawing, shown, [1] * len(shown), at, base, _FLAT, step)
    if timed:
        top, base = base + _GAP, base + _GAP + _TIME
        times = [batch.duration_ms for batch in shown]
        longest = max(value for value in times if value is not None)
        drawing.words(2, top - 8, f"duration, at most {duration_text(longest)}", "dim")
        _bars(drawing, shown, times, at, base, _TIME, step)
    longest_id = len(str(shown[-1].batch))
    every = max(1, -(-(longest_id * 9 + 8) // max(int(step), 1)))
    for index, (batch, x) in enumerate(zip(reversed(shown), reversed(at), strict=True)):
        if index % every == 0:
            drawing.words(x, base + 18, batch.batch, "", "middle")
    drawing.height = base + _FOOT


def _bars(
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
