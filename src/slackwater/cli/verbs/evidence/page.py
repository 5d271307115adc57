"""The bundle's page, made from the document alone by ``page.html.j2``; and what its drawings choose to show."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import count
from math import ceil
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from slackwater.cli.common.console import mark, number, timestamp
from slackwater.cli.verbs.doctor import by_reason
from slackwater.core.escaping import one_line
from slackwater.core.units import counted, duration_text, size_text, utc_text
from slackwater.operations.goals.goal import GOALS, goal_named

LONGEST = 1500
"""Characters of a value on a page; the document has all."""
_BACKTICKS = re.compile(r"`([^`]+)`")
_COMMAND = re.compile(r"(?:^|: |after |or )((?:slackwater (?:run|plan|apply|undo)|mkdir -p|mv -n|printf %s) [^;\n]*)")
_DIGIT_WIDTH = 9
_HOUR_MS = 3_600_000
_FAR = 20
_Spans = Iterable[Sequence[int]]


def page(made: Mapping[str, Any]) -> str:
    return _template().render(made=made) + "\n"


@cache
def _template() -> Template:
    environment = Environment(
        autoescape=True, finalize=_safe, loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined
    )
    environment.filters |= {
        "duration": lambda value: "-" if value is None else duration_text(value),
        "goal": _goal,
        "json_text": _json_text,
        "mark": mark,
        "number": number,
        "prose": prose,
        "short": lambda value: f"{value:.1f}".removesuffix(".0"),
        "size": size_text,
        "timestamp": timestamp,
        "utc": utc_text,
        "with_commands": _with_commands,
    }
    environment.globals |= {
        "all_times": lambda batches: [time for batch in batches for time in _times(batch)],
        "at_time": _at_time,
        "bars": _bars,
        "by_reason": lambda missed: by_reason((one["code"], one["reason"], one["how"]) for one in missed),
        "causes": lambda errors: [(error, cause) for error in errors for cause in error["causes"]],
        "columns": columns,
        "counted": counted,
        "is_kept": _is_kept,
        "known": lambda batches, name: [batch[name] for batch in batches if batch[name] is not None],
        "labelled": _labelled,
        "placed": lambda ids, left, step: {batch: left + step * (at + 0.5) for at, batch in enumerate(ids)},
        "rows_times": lambda batches: [time for batch in batches for time in _row_times(batch) if time],
        "scale_of": scale_of,
        "with_times": lambda batches: [batch for batch in batches if _times(batch)],
    }
    return environment.get_template("page.html.j2")


def _safe(value: object) -> object:
    """A value without control characters; markup stays."""
    return value if isinstance(value, Markup) else one_line(str(value))


def prose(value: str) -> Markup:
    parts = (one_line(part) for part in _BACKTICKS.split(value))
    return Markup().join(Markup("<code>{}</code>").format(part) if at % 2 else part for at, part in enumerate(parts))


def _with_commands(advice: str) -> Markup:
    """Prose in which each command has a box of its own."""
    at, shown = 0, Markup()
    for found in _COMMAND.finditer(advice):
        command = Markup('<code class="command">{}</code>').format(one_line(found[1]))
        shown += prose(advice[at : found.start(1)]) + command
        at = found.end(1)
    return shown + prose(advice[at:])


def _goal(goal: str | None) -> str | None:
    if goal is None or goal not in GOALS:
        return goal
    summary = goal_named(goal).summary
    return f"{goal}: {summary[:1].lower()}{summary[1:]}"


def _json_text(value: Any) -> str:
    shown = value if isinstance(value, str) else json.dumps(value, separators=(", ", ": "))
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}... (whole in evidence.json)"


def columns(lanes: Sequence[Mapping[str, Any]], following: int, room: int) -> list[int]:
    """The drawn batches: all marks, the first kept batch, and as many more as fit."""
    ends = {lane["mark"] for lane in lanes if lane["mark"] is not None and lane["mark"] >= 0}
    firsts = {lane["kept"][0][0] for lane in lanes if lane["kept"] and lane["name"] != "written"}
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


def _labelled(ids: Iterable[int], step: float, gap: int) -> list[int]:
    """The batches whose numbers have room under columns of this width, the newest first."""
    newest_first = sorted(ids, reverse=True)
    width = len(str(newest_first[0])) * _DIGIT_WIDTH + gap
    return newest_first[:: max(1, ceil(width / max(int(step), 1)))]


def _bars(ids: Iterable[int], kept: _Spans) -> Iterator[tuple[int, int]]:
    """The first and the last of the drawn batches in each kept range."""
    for first, last in kept:
        inside = [batch for batch in ids if first <= batch <= last]
        if inside:
            yield inside[0], inside[-1]


def _is_kept(batch: int, kept: _Spans) -> bool:
    return any(first <= batch <= last for first, last in kept)


def _row_times(batch: Mapping[str, Any]) -> tuple[int | None, int | None]:
    return batch["event_time_min_ms"], batch["event_time_max_ms"]


def _times(batch: Mapping[str, Any]) -> list[int]:
    """The event times and the watermark; Spark's watermark starts at 0."""
    return [time for time in (*_row_times(batch), batch["watermark_ms"] or None) if time is not None]


def scale_of(times: Iterable[int]) -> tuple[int, int]:
    known = sorted(times)
    middle, quarter = known[len(known) // 2], len(known) // 4
    reach = _FAR * max(known[-1 - quarter] - known[quarter], _HOUR_MS)
    near = [time for time in known if abs(time - middle) <= reach]
    return near[0], near[-1]


def _at_time(time_ms: int, scale: tuple[int, int, float, float]) -> float:
    """The position of a time; a time outside is at the edge."""
    first_ms, last_ms, left, right = scale
    share = (time_ms - first_ms) / max(last_ms - first_ms, 1)
    return left + (right - left) * min(max(share, 0), 1)
