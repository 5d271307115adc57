"""Recognises time windows, which Spark's analyser replaces by arithmetic: ``TimeWindowing``, ``SessionWindowing``.

Sources: ``ResolveTimeWindows.scala``, Spark 3.5-4.3.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from slackwater.core.program import Window, WindowKind
from slackwater.formats.plan_json import TreeNode

CONVERSION = "PreciseTimestampConversion"
PARTS = 4
"""The number of parts in a window's struct: names and values of its start and end."""
UNITS = {"day": 86_400_000_000, "hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}
QUOTED_DURATION = re.compile(rf"(?:interval )?'(\d+) ({'|'.join(UNITS)})s?'")
Expand = Callable[[TreeNode], str]


def time_window(struct: TreeNode, text_of: Expand) -> Window | None:
    end = _end(struct)
    if end is None or len(struct.children) != PARTS:
        return None
    remainder = next((node for node in struct.walk() if node.name == "Remainder"), None)
    if remainder is None or end.name != "Add" or _number(end.children[1]) is None:
        return None
    start_time, slide = remainder.children[0], _number(remainder.children[1])
    length, offset = _number(end.children[1]), _number(start_time.children[1]) if len(start_time.children) > 1 else 0
    conversion = next((node for node in remainder.walk() if node.name == CONVERSION), None)
    if slide is None or length is None or offset is None or conversion is None:
        return None
    time = text_of(conversion.children[0])
    kind: WindowKind = "tumbling" if slide == length else "sliding"
    parts = [time, _duration(length)]
    if slide != length or offset:
        parts.append(_duration(slide))
    if offset:
        parts.append(_duration(offset))
    text = f"window({', '.join(parts)})"
    return Window(kind, time, length // 1000, slide // 1000, offset // 1000, text=text)


def session_window(struct: TreeNode, text_of: Expand) -> Window | None:
    end = _end(struct)
    if (
        end is None
        or len(struct.children) != PARTS
        or any(node.name == "Remainder" for node in struct.children[1].walk())
    ):
        return None
    added = next((node for node in end.walk() if node.name in ("TimestampAddInterval", "TimeAdd")), None)
    if added is None or end.name != CONVERSION:
        return None
    time = text_of(added.children[0])
    gap = QUOTED_DURATION.sub(lambda found: _duration(int(found[1]) * UNITS[found[2]]), text_of(added.children[1]))
    return Window("session", time, gap=gap, text=f"session_window({time}, {gap})")


def implied(window: Window) -> Iterator[str]:
    yield f"({window.time} IS NOT NULL)"
    for left, word, mirrored, right in (
        (window.time, ">=", "<=", f"{window.text}.start"),
        (window.time, "<", ">", f"{window.text}.end"),
        (f"{window.text}.end", ">", "<", f"{window.text}.start"),
    ):
        yield f"({left} {word} {right})"
        yield f"({right} {mirrored} {left})"


def _end(struct: TreeNode) -> TreeNode | None:
    if struct.name != "CreateNamedStruct" or len(struct.children) != PARTS:
        return None
    names = [str(child.fields.get("value")) for child in struct.children[::2]]
    if names != ["start", "end"]:
        return None
    end = struct.children[3]
    while end.name in ("KnownNullable", "Cast"):
        end = end.children[0]
    return end.children[0] if end.name == CONVERSION else None


def _number(node: TreeNode) -> int | None:
    while node.name == "Cast":
        node = node.children[0]
    value = node.fields.get("value") if node.name == "Literal" else None
    return int(value) if value is not None and str(value).lstrip("-").isdigit() else None


def _duration(microseconds: int) -> str:
    for unit, size in UNITS.items():
        if microseconds % size == 0 and microseconds:
            count = microseconds // size
            return f"{count} {unit}{'s' if count != 1 else ''}"
    return f"{microseconds} microseconds"
