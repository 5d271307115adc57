"""Reads a query's profile from Spark's own logical plan, through the driver's JVM handle.

Source: ``EventTimeWatermark``, ``TimeWindow`` and the plans in ``UnsupportedOperationChecker``, Spark 3.5-4.3.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from slackwater.model.profile import QueryProfile
from slackwater.runtime.logical_plan import WATERMARK, analysed_plan, delay_ms, name_of, nodes_of, streaming_sources
from slackwater.runtime.rows_digest import rows_digest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STATEFUL = {
    "Aggregate",
    "Deduplicate",
    "DeduplicateWithinWatermark",
    "FlatMapGroupsInPandasWithState",
    "FlatMapGroupsWithState",
    "GlobalLimit",
    "Join",
    "TransformWithState",
    "TransformWithStateInPandas",
    "TransformWithStateInPySpark",
}
EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."


def profile_of(frame: DataFrame) -> QueryProfile:
    """The profile of the query that ``frame`` describes."""
    plan = analysed_plan(frame)
    nodes = list(nodes_of(plan))
    operators = tuple(name for node in nodes if (name := _stateful_name(node)))
    delays = tuple(delay_ms(node) for node in nodes if name_of(node) == WATERMARK)
    windows = {window for node in nodes if name_of(node) in ("Project", "Expand") for window in _windows_ms(node)}
    sources = tuple(str(source.sourceName()) for source in streaming_sources(plan))
    retention = _retention_ms(nodes, operators, delays, windows)
    return QueryProfile(operators, delays, tuple(sorted(windows)), retention, sources, rows_digest(frame))


def _stateful_name(node: Any) -> str | None:
    name = name_of(node)
    if name not in STATEFUL or not node.isStreaming():
        return None
    if name == "Join" and not (node.left().isStreaming() and node.right().isStreaming()):
        return None
    return name


def _retention_ms(
    nodes: list[Any], operators: tuple[str, ...], delays: tuple[int, ...], windows: set[int]
) -> int | None:
    """How far behind the watermark a row still matters.

    Windowed aggregations keep a window until its end is behind the watermark, so rows as old as the window's length;
    in a chain each adds its own. A session has no fixed length, and other operators keep rows by rules of their own.
    """
    if not operators:
        return 0
    if set(operators) != {"Aggregate"} or len(delays) != 1 or not windows:
        return None
    if any("session_window" in str(node.simpleString(200)) for node in nodes):
        return None
    if not all(_groups_by_window(node) for node in nodes if _stateful_name(node)):
        return None
    return sum(windows) if len(operators) == 1 else max(windows) * len(operators)


def _groups_by_window(aggregate: Any) -> bool:
    expressions = aggregate.groupingExpressions()
    return any(_is_window(expressions.apply(index)) for index in range(expressions.size()))


def _is_window(expression: Any) -> bool:
    try:
        metadata = expression.metadata()
    except Exception as error:  # py4j: only a named expression has this method
        if type(error).__name__ != "Py4JError":
            raise
        return False
    return bool(metadata.contains("spark.timeWindow"))


def _windows_ms(node: Any) -> set[int]:
    """Lengths of the time windows a plan node makes: the literal its end adds to its start."""
    expressions = node.expressions()
    lengths: set[int] = set()
    for index in range(expressions.size()):
        expression = expressions.apply(index)
        if "window" in str(expression) or "precisetimestampconversion" in str(expression):
            lengths.update(_lengths_ms(json.loads(expression.toJSON())))
    return lengths


def _lengths_ms(tree: list[dict[str, Any]]) -> Iterator[int]:
    """From an expression in Spark's JSON (a list in preorder): Literal "end", ... Add(start, Literal(length in us))."""
    for index, node in enumerate(tree):
        if node["class"] != EXPRESSIONS + "Literal" or node.get("value") != "end":
            continue
        for inner_index, inner in enumerate(tree[index + 1 : index + 4], start=index + 1):
            if inner["class"] == EXPRESSIONS + "Add":
                right = tree[_skip(tree, inner_index + 1)]
                if right["class"] == EXPRESSIONS + "Literal":
                    yield int(right["value"]) // 1000
                break


def _skip(tree: list[dict[str, Any]], index: int) -> int:
    """The index just after the subtree that starts at ``index``."""
    left = 1
    while left:
        left += tree[index]["num-children"] - 1
        index += 1
    return index
