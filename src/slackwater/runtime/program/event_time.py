"""Finds, from Spark's logical plan, how far behind the watermark rows matter for state.

A bound is used only if recorded event times cover all rows that reach the operator: in each branch, its compared column
is a watermark's column. Anything else has no bound and is recomputed from the first batch.

Spark's analyser replaces time windows by arithmetic, by which they are recognised.

Source: ``TimeWindow``, ``SessionWindow``, ``ResolveTimeWindows``, ``StreamingJoinHelper``,
``StreamingSymmetricHashJoinHelper``, Spark 3.5-4.3.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from py4j.java_gateway import get_field

from slackwater.core.program import Window, WindowKind
from slackwater.formats.plan_json import TreeNode, parse_plan
from slackwater.runtime.program.logical_plan import (
    WATERMARK,
    active_jvm,
    class_name,
    elements,
    is_streaming_source,
    nodes_of,
)

DELAY = "spark.watermarkDelayMs"
WINDOW = "spark.timeWindow"
SESSION = "spark.sessionWindow"
PASSING = {"Filter", "Generate", "Repartition", "RepartitionByExpression", "SubqueryAlias"}
"""Nodes whose output columns are their child's columns, unchanged."""
ABOVE_JOIN = {"Project", "SubqueryAlias"}
"""Nodes that the optimiser does not merge into the condition of a join below them."""
ATTRIBUTE = "AttributeReference"
GROUPING_SET = "spark_grouping_id"
"""The column by which Spark groups in a rollup, a cube or grouping sets (``VirtualColumn.groupingIdName``)."""
ADDITIONS = {"TimeAdd", "TimestampAddInterval"}
EQUALITIES = {"EqualTo", "EqualNullSafe"}
PROBES_MS = (1_700_000_000_000, 1_800_000_000_000)
"""Watermarks for which Spark computes a join's evictions. py4j passes numbers below 2^31 as Integer."""


def windows_of(nodes: Sequence[Any]) -> set[int]:
    """The window lengths in Spark's JSON: Literal "end", ... Add(start, Literal(length in us))."""
    found = set()
    for parts in (list(tree.walk()) for tree in _window_trees(nodes)):
        for place, node in enumerate(parts):
            if node.name == "Literal" and node.fields.get("value") == "end":
                added = next((one for one in parts[place + 1 : place + 4] if one.name == "Add"), None)
                if added is not None and added.children[1].name == "Literal":
                    found.add(int(added.children[1].fields["value"]) // 1000)
    return found


def window_retention_ms(nodes: Sequence[Any], aggregates: Sequence[Any], windows: set[int]) -> int | None:
    """How far behind the watermark rows matter to windowed aggregations; ``None``: unknown.

    A window is kept until its end is behind the watermark, so rows as old as its length count; in a chain lengths add
    up.
    """
    watermarks = [node for node in nodes if class_name(node) == WATERMARK]
    if len(watermarks) != 1 or not windows:
        return None
    # Otherwise the event times lack the rows of a source.
    if sum(map(is_streaming_source, nodes_of(watermarks[0]))) != sum(map(is_streaming_source, nodes)):
        return None
    if not all(_grouped_by(aggregate, WINDOW) for aggregate in aggregates):
        return None
    groupings = [one for aggregate in aggregates for one in elements(aggregate.groupingExpressions())]
    if any(class_name(one) == ATTRIBUTE and one.metadata().contains(SESSION) for one in groupings):
        # Spark keeps it until the session's end, which can be after that of the window.
        return None
    return sum(windows) if len(aggregates) == 1 else max(windows) * len(aggregates)


def window_starts_ms(nodes: Sequence[Any]) -> tuple[int, int] | None:
    """The distance of window starts and the first start after the epoch; ``None``: unknown, or they differ."""
    found: set[tuple[int, int] | None] = set()
    for node in (one for tree in _window_trees(nodes) for one in tree.walk() if one.name == "Remainder"):
        # ``(time - start) % slide``
        left, slide = node.children
        slide_ms, start_ms = _whole_ms(slide), _whole_ms(left.children[1] if left.name == "Subtract" else left)
        found.add(None if slide_ms is None or start_ms is None else (slide_ms, start_ms))
    return found.pop() if len(found) == 1 else None


def session_gap_ms(nodes: Sequence[Any], aggregates: Sequence[Any]) -> int | None:
    """The constant session gap of a query's only stateful operator, or ``None``.

    Sessions have no fixed length, but rows further apart than the gap are in different sessions.
    """
    if len(aggregates) != 1 or sum(class_name(node) == WATERMARK for node in nodes) != 1:
        return None
    (aggregate,) = aggregates
    sessions = _grouped_by(aggregate, SESSION)
    if len(sessions) != 1 or len(_grouped_by(aggregate, DELAY)) != 1:
        return None
    projected = (
        (node.child(), one)
        for node in nodes_of(aggregate.child())
        if class_name(node) == "Project"
        for one in elements(node.projectList())
        if class_name(one) == "Alias" and _same(one, sessions[0])
    )
    child, session = next(projected, (None, None))
    added = [one for one in nodes_of(session) if class_name(one) in ADDITIONS] if session is not None else []
    if len(added) != 1:
        return None
    time, gap = elements(added[0].children())
    if class_name(time) != ATTRIBUTE or not _is_event_time(child, time) or not gap.foldable():
        return None
    length = gap.eval(None)
    if length is None or get_field(length, "months") or get_field(length, "days"):
        # A day is not always as long, by the time zone.
        return None
    micros = get_field(length, "microseconds")
    # Rounded up: with a shorter gap, rows of one session could count as those of two.
    return -(-micros // 1000) if micros > 0 else None


def join_retention_ms(nodes: Sequence[Any], join: Any) -> int | None:
    """How far behind the watermark rows matter to a stream-stream join; ``None``: unknown, or for ever.

    Spark keeps a row until no row that is not late can match it. Its matches, which the condition allows to be older,
    decide an outer or semi join's result.
    """
    above = nodes[: next(index for index, node in enumerate(nodes) if node.equals(join))]
    if not all(class_name(node) in ABOVE_JOIN for node in above) or join.condition().isEmpty():
        return None
    left, right = _event_time_of(join.left()), _event_time_of(join.right())
    equalities = [one for one in nodes_of(join.condition().get()) if class_name(one) in EQUALITIES]
    references = [reference for one in equalities for reference in elements(one.references().toSeq())]
    # By a join key that is an event time, Spark evicts by the key, not by the condition.
    if left is None or right is None or any(one.metadata().contains(DELAY) for one in references):
        return None
    of_left = _kept_behind_ms(join, left, join.left(), join.right())
    of_right = _kept_behind_ms(join, right, join.right(), join.left())
    if of_left is None or of_right is None:
        return None
    return max(of_left, of_right, of_left + of_right, 0)


def evicts_by_time(join: Any) -> bool:
    """Return whether Spark removes join rows when the watermark advances.

    It does if event time is a join key, or if the condition bounds one side's event time by the other side's columns
    (``StreamingSymmetricHashJoinHelper.getStateWatermarkPredicates``). ``join`` is from the optimised plan, whose
    condition includes the filters above.
    """
    if join.condition().isEmpty():
        return False
    found = active_jvm().org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys.unapply(join)
    if found.isDefined():
        # The tuple starts with the type of the join, the keys of the left side and the keys of the right side.
        keys = [key for side in (1, 2) for key in elements(found.get().productElement(side))]
        # Only the column itself, as functions of it have no watermark.
        if any(class_name(key) == ATTRIBUTE and key.metadata().contains(DELAY) for key in keys):
            return True
    return any(
        any(column.metadata().contains(DELAY) for column in elements(side.output()))
        and _state_watermark_ms(join, side.outputSet(), other, PROBES_MS[0]) is not None
        for side, other in ((join.left(), join.right()), (join.right(), join.left()))
    )


def _state_watermark_ms(join: Any, columns: Any, other: Any, watermark_ms: int) -> int | None:
    helper = active_jvm().org.apache.spark.sql.catalyst.analysis.StreamingJoinHelper
    watermark = active_jvm().scala.Option.apply(watermark_ms)
    kept = helper.getStateValueWatermark(columns, other.outputSet(), join.condition(), watermark)
    return int(kept.get()) if kept.isDefined() else None


def _kept_behind_ms(join: Any, column: Any, side: Any, other: Any) -> int | None:
    """The distance behind the watermark; Spark computes it linearly from the watermarked column."""
    found = set()
    for watermark_ms in PROBES_MS:
        for columns in (side.outputSet(), column.references()):
            kept_ms = _state_watermark_ms(join, columns, other, watermark_ms)
            found.add(None if kept_ms is None else watermark_ms - kept_ms)
    return found.pop() if len(found) == 1 else None


def _event_time_of(side: Any) -> Any | None:
    columns = [column for column in elements(side.output()) if column.metadata().contains(DELAY)]
    return columns[0] if len(columns) == 1 and _is_event_time(side, columns[0]) else None


def _is_event_time(node: Any, column: Any) -> bool:
    name = class_name(node)
    if name == WATERMARK:
        return _same(node.eventTime(), column)
    if name == "Project":
        projected = [one for one in elements(node.projectList()) if _same(one, column)]
        read = [one.child() if class_name(one) == "Alias" else one for one in projected]
        return any(class_name(one) == ATTRIBUTE and _is_event_time(node.child(), one) for one in read)
    if name == "Union":
        index = next(index for index, one in enumerate(elements(node.output())) if _same(one, column))
        return all(_is_event_time(child, child.output().apply(index)) for child in elements(node.children()))
    if name == "Join":
        sides = [side for side in (node.left(), node.right()) if side.isStreaming()]
        return len(sides) == 1 and sides[0].outputSet().contains(column) and _is_event_time(sides[0], column)
    return name in PASSING and node.child().outputSet().contains(column) and _is_event_time(node.child(), column)


def _grouped_by(aggregate: Any, marker: str) -> list[Any]:
    """The marked grouping columns derived from a watermark's column.

    Empty for a rollup or cube: grouping sets without the column have null, and Spark keeps these groups for ever.
    """
    columns = [one for one in elements(aggregate.groupingExpressions()) if class_name(one) == ATTRIBUTE]
    if any(one.name() == GROUPING_SET for one in columns):
        return []
    return [one for one in columns if one.metadata().contains(marker) and one.metadata().contains(DELAY)]


def _same(one: Any, other: Any) -> bool:
    return bool(one.exprId().equals(other.exprId()))


def _window_trees(nodes: Sequence[Any]) -> Iterator[TreeNode]:
    projections = (node for node in nodes if class_name(node) in ("Project", "Expand"))
    for expression in (one for node in projections for one in elements(node.expressions())):
        if "window" in str(expression) or "precisetimestampconversion" in str(expression):
            yield parse_plan(expression.toJSON())


def _whole_ms(node: TreeNode) -> int | None:
    micros = _number(node)
    return None if micros is None or micros % 1000 else micros // 1000


CONVERSION = "PreciseTimestampConversion"
PARTS = 4
"""The number of parts in a window's struct: names and values of its start and end."""
UNITS = {"day": 86_400_000_000, "hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}
QUOTED_DURATION = re.compile(rf"(?:interval )?'(\d+) ({'|'.join(UNITS)})s?'")
Expand = Callable[[TreeNode], str]


def time_window(struct: TreeNode, text_of: Expand) -> Window | None:
    end = _end(struct)
    remainder = next((node for node in struct.walk() if node.name == "Remainder"), None)
    if end is None or end.name != "Add" or remainder is None:
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
    if end is None or any(node.name == "Remainder" for node in struct.children[1].walk()):
        return None
    added = next((node for node in end.walk() if node.name in ADDITIONS), None)
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
