"""Digests the part of a query's plan that decides which rows, with which event times, reach its watermarks.

Recorded event times of a batch are evidence of what the batch holds only for the code that read them: where this digest
is another one, the batch's rows have to be read again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from slackwater.masking import mask_setting
from slackwater.runtime.logical_plan import (
    WATERMARK,
    analysed_plan,
    delay_ms,
    elements,
    is_streaming_source,
    name_of,
    nodes_of,
    source_options,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_FIELDS = "spark.sql.debug.maxToStringFields"
ALL_FIELDS = 1_000_000
"""Spark writes "... 3 more fields" otherwise, and a change among these would not show."""

EXPRESSION_ID = re.compile(r"#(\d+)L?\b")
ADDRESS = re.compile(r"@[0-9a-f]{5,8}\b")
OPAQUE_NODE = re.compile(
    r"Python|Pandas|Arrow|MapElements|MapPartitions|MapGroups|CoGroup|TypedFilter|TransformWithState"
)
OPAQUE_EXPRESSION = re.compile(r"Python|UDF|UDAF|UDTF")
KNOWN_LEAVES = frozenset({"Range", "OneRowRelation"})
"""Any other batch relation holds rows that the plan does not show."""


def rows_digest(frame: DataFrame) -> str | None:
    """SHA-256 of the plan at and below each watermark: sources with their options, filters, projections.

    The same for unchanged code in any process and session. ``None`` where the plan does not show everything: without a
    watermark, and below one with a Python or Java function, a random expression, or a table read as a batch.
    """
    spark = frame.sparkSession
    before = spark.conf.get(MOST_FIELDS, None)
    spark.conf.set(MOST_FIELDS, str(ALL_FIELDS))
    try:
        watermarks = list(_outermost_watermarks(analysed_plan(frame)))
        if not watermarks or not all(_shows_everything(watermark) for watermark in watermarks):
            return None
        described = [[_describe(node) for node in _with_subqueries(watermark)] for watermark in watermarks]
    finally:
        if before is None:
            spark.conf.unset(MOST_FIELDS)
        else:
            spark.conf.set(MOST_FIELDS, before)
    return sha256(_normalised(described).encode()).hexdigest()


def _outermost_watermarks(node: Any) -> Iterator[Any]:
    if name_of(node) == WATERMARK:
        yield node
        return
    for child in elements(node.children()):
        yield from _outermost_watermarks(child)


def _with_subqueries(plan: Any) -> Iterator[Any]:
    for node in nodes_of(plan):
        yield node
        for subquery in elements(node.subqueries()):
            yield from _with_subqueries(subquery)


def _shows_everything(plan: Any) -> bool:
    return all(_node_shows_everything(node) for node in _with_subqueries(plan))


def _node_shows_everything(node: Any) -> bool:
    name = name_of(node)
    if OPAQUE_NODE.search(name):
        return False
    if node.children().isEmpty() and not (is_streaming_source(node) or name in KNOWN_LEAVES):
        return False
    return all(
        expression.deterministic() and not OPAQUE_EXPRESSION.search(" ".join(_classes(expression)))
        for expression in elements(node.expressions())
    )


def _classes(expression: Any) -> list[str]:
    return [part["class"].rsplit(".", 1)[-1] for part in json.loads(expression.toJSON())]


def _describe(node: Any) -> dict[str, Any]:
    """The node with everything that decides its rows. ``literals`` are beside the expressions, which lose ids."""
    name = name_of(node)
    if is_streaming_source(node):
        return {"node": name, "source": _source(node)}
    if name == WATERMARK:
        # Its string has an id that is new in each session.
        return {"node": name, "column": str(node.eventTime().name()), "delay_ms": delay_ms(node)}
    return {
        "node": name,
        "expressions": str(node.simpleString(ALL_FIELDS)),
        "literals": [part.get("value") for part in _literals(node)],
    }


def _literals(node: Any) -> Iterator[dict[str, Any]]:
    for expression in elements(node.expressions()):
        yield from (part for part in json.loads(expression.toJSON()) if part["class"].endswith(".Literal"))


def _source(relation: Any) -> dict[str, Any]:
    options = source_options(relation)
    return {
        "name": str(relation.sourceName()),
        "schema": json.loads(relation.schema().json()),
        "options": {key: mask_setting(key, options[key]) for key in sorted(options)},
    }


def _normalised(described: list[list[dict[str, Any]]]) -> str:
    """The description without what differs between sessions: expression ids become numbers in order of appearance."""
    numbers: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        return "#" + numbers.setdefault(match[1], str(len(numbers)))

    for node in (node for subtree in described for node in subtree if "expressions" in node):
        node["expressions"] = ADDRESS.sub("@", EXPRESSION_ID.sub(number, node["expressions"]))
    return json.dumps(described, sort_keys=True)
