"""Reads a query's profile from Spark's logical plan, through the driver's JVM handle.

Its digest covers the part that decides which rows and event times reach the watermarks: recorded event times are
evidence only for the code that read them.

Source: ``EventTimeWatermark``, ``TimeWindow`` and the plans in ``UnsupportedOperationChecker``, Spark 3.5-4.3.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from slackwater.core.masking import mask_setting
from slackwater.core.program import QueryProfile
from slackwater.runtime.program.event_time import (
    evicts_by_time,
    join_retention_ms,
    session_gap_ms,
    window_retention_ms,
    window_starts_ms,
    windows_of,
)
from slackwater.runtime.program.logical_plan import (
    WATERMARK,
    analysed_plan,
    class_name,
    delay_ms,
    elements,
    is_streaming_source,
    nodes_of,
    source_logs,
    source_options,
    streaming_sources,
)
from slackwater.runtime.program.unsupported import keeps_state, late_in_chain
from slackwater.runtime.session.settings import active, with_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
_RANDOM = {
    "Rand": "rand",
    "Randn": "randn",
    "RandStr": "randstr",
    "Uniform": "uniform",
    "Uuid": "uuid",
    "Shuffle": "shuffle",
    "MonotonicallyIncreasingID": "monotonically_increasing_id",
    "SparkPartitionID": "spark_partition_id",
}
"""Spark's random expressions. A seed does not make them repeatable: partitions and row order vary."""

_BY_ORDER = {
    "First": "first",
    "Last": "last",
    "CollectList": "collect_list",
    "ListAgg": "listagg",
    "MaxBy": "max_by",
    "MinBy": "min_by",
    "Mode": "mode",
}
"""Aggregates whose result depends on the order of rows, for some only among equal rows. ``any_value`` is First.

The elements of a ``collect_set`` can have a different order, but they are the same elements.
"""
_FIXED_BATCH = frozenset({"LocalRelation", "OneRowRelation", "Range"})
"""Batch relations whose rows are in the plan."""


def profile_of(frame: DataFrame, code: str | None = None, output_mode: str = "append") -> QueryProfile:
    plan = analysed_plan(frame)
    nodes = list(nodes_of(plan))
    operators = tuple(name for node in nodes if (name := _stateful_name(node)))
    delays = tuple(delay_ms(node) for node in nodes if class_name(node) == WATERMARK)
    windows = windows_of(nodes)
    sources = tuple(str(source.sourceName()) for source in streaming_sources(plan))
    retention = _retention_ms(nodes, operators, windows)
    digest, logs = rows_digest(frame, code), tuple(source_logs(plan))
    random, by_order, reads_tables, asks_for_batches = _below_state(frame, output_mode)
    aggregates = [node for node in nodes if _stateful_name(node)] if operators == ("Aggregate",) else []
    return QueryProfile(
        operators,
        delays,
        tuple(sorted(windows)),
        retention,
        sources,
        digest,
        logs,
        random,
        late_in_chain=len(operators) > 1 and late_in_chain(frame, output_mode),
        by_order=by_order,
        reads_tables=reads_tables,
        asks_for_batches=asks_for_batches,
        session_gap_ms=session_gap_ms(nodes, aggregates),
        window_starts_ms=window_starts_ms(nodes) if aggregates and len(windows) == 1 else None,
        spark_version=str(frame.sparkSession.version),
    )


def _stateful_name(node: Any) -> str | None:
    name = class_name(node)
    if name not in STATEFUL or not node.isStreaming():
        return None
    if name == "Join" and not (node.left().isStreaming() and node.right().isStreaming()):
        return None
    return name


def _retention_ms(nodes: list[Any], operators: tuple[str, ...], windows: set[int]) -> int | None:
    """How far behind the watermark rows matter, 0 without state; ``None``: unknown, or not constant."""
    stateful = [node for node in nodes if _stateful_name(node)]
    if not operators:
        return 0
    if set(operators) == {"Aggregate"}:
        return window_retention_ms(nodes, stateful, windows)
    return join_retention_ms(nodes, stateful[0]) if operators == ("Join",) else None


MOST_FIELDS = "spark.sql.debug.maxToStringFields"
ALL_FIELDS = 1_000_000
"""Otherwise Spark writes "... 3 more fields", which would hide a change among these fields."""

EXPRESSION_ID = re.compile(r"#(\d+)L?\b")
ADDRESS = re.compile(r"@[0-9a-f]{5,8}\b")
PYTHON = re.compile(r"Python|Pandas|Arrow")
OPAQUE_NODE = re.compile(r"MapElements|MapPartitions|MapGroups|CoGroup|TypedFilter|TransformWithState")
OPAQUE_EXPRESSION = re.compile(r"^(?!Python|Pandas|Arrow).*(UDF|UDAF|UDTF)")
CURRENT_TIME = re.compile(r"(?i)\b(current_timestamp|current_date|current_time|localtimestamp|now)\(")
EXCLUDED_RULES = "spark.sql.optimizer.excludedRules"
COLUMN_RULES = tuple(
    f"org.apache.spark.sql.catalyst.optimizer.{name}" for name in ("ColumnPruning", "NestedColumnAliasing")
)
KNOWN_LEAVES = frozenset({"Range", "OneRowRelation"})
"""Any other batch relation holds rows that the plan does not show."""


def rows_digest(frame: DataFrame, code: str | None) -> str | None:
    """SHA-256 of the optimised plan at and below each watermark.

    Spark applies later filters before a watermark, even through an aggregation, so its optimiser decides the extent.
    Stable over processes and sessions. ``code`` is for Python functions (``None``: unknown). ``None`` if the plan is
    incomplete: no watermark, or below it a Java function, a random expression, the current time, or a batch table.
    """
    spark = frame.sparkSession
    analysed = analysed_plan(frame)
    if any(class_name(node) == WATERMARK for node in nodes_of(analysed)):
        # All columns are read: later use does not matter here.
        excluded = ",".join([*filter(None, [spark.conf.get(EXCLUDED_RULES, None)]), *COLUMN_RULES])
        with active(spark), with_settings(spark, {MOST_FIELDS: str(ALL_FIELDS), EXCLUDED_RULES: excluded}):
            return _digest(analysed, _optimised(spark, analysed), code)
    return None


def _digest(analysed: Any, optimised: Any, code: str | None) -> str | None:
    watermarks = list(_outermost_watermarks(optimised))
    nodes = [node for watermark in watermarks for node in _with_subqueries(watermark)]
    # Of the analysed plan: the optimiser replaces the current time by a literal (``ComputeCurrentTime``).
    reads_clock = CURRENT_TIME.search(str(analysed.toString())) is not None
    if not watermarks or reads_clock or not all(_node_shows_everything(node) for node in nodes):
        return None
    described = [[_describe(node) for node in _with_subqueries(watermark)] for watermark in watermarks]
    classes = (one for node in nodes for each in elements(node.expressions()) for one in _classes(each))
    if any(map(PYTHON.search, (*map(class_name, nodes), *classes))):
        if code is None:
            return None
        described.append([{"node": "Python", "code": code}])
    return sha256(_normalised(described).encode()).hexdigest()


def _optimised(spark: SparkSession, analysed: Any) -> Any:
    """The optimised plan, with each filter at its final place."""
    return spark._jsparkSession.sessionState().optimizer().execute(analysed)


def _outermost_watermarks(node: Any) -> Iterator[Any]:
    if class_name(node) == WATERMARK:
        yield node
        return
    for child in elements(node.children()):
        yield from _outermost_watermarks(child)


def _node_shows_everything(node: Any) -> bool:
    name = class_name(node)
    if OPAQUE_NODE.search(name):
        return False
    if node.children().isEmpty() and not (is_streaming_source(node) or name in KNOWN_LEAVES):
        return False
    return all(
        expression.deterministic() and not any(OPAQUE_EXPRESSION.search(one) for one in _classes(expression))
        for expression in elements(node.expressions())
    )


def _classes(expression: Any) -> list[str]:
    return [part["class"].rsplit(".", 1)[-1] for part in json.loads(expression.toJSON())]


def _describe(node: Any) -> dict[str, Any]:
    name = class_name(node)
    if is_streaming_source(node):
        return {"node": name, "source": _source(node)}
    if name == WATERMARK:
        # Its string has an id that is new in each session.
        return {"node": name, "column": str(node.eventTime().name()), "delay_ms": delay_ms(node)}
    return {
        "node": name,
        "expressions": str(node.simpleString(ALL_FIELDS)),
        "literals": [
            part.get("value")
            for expression in elements(node.expressions())
            for part in json.loads(expression.toJSON())
            if part["class"].endswith(".Literal")
        ],
    }


def _source(relation: Any) -> dict[str, Any]:
    options = source_options(relation)
    return {
        "name": str(relation.sourceName()),
        "schema": json.loads(relation.schema().json()),
        "options": {key: mask_setting(key, options[key]) for key in sorted(options)},
    }


def _normalised(described: list[list[dict[str, Any]]]) -> str:
    numbers: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        return "#" + numbers.setdefault(match[1], str(len(numbers)))

    for node in (node for subtree in described for node in subtree if "expressions" in node):
        node["expressions"] = ADDRESS.sub("@", EXPRESSION_ID.sub(number, node["expressions"]))
    return json.dumps(described, sort_keys=True)


def _below_state(frame: DataFrame, output_mode: str) -> tuple[tuple[str, ...], tuple[str, ...], bool, bool]:
    """Parts of state that a replay may compute differently, in plan order.

    Functions with changing values; aggregates that depend on row order; whether batch relations are read, as they are
    in each batch; ``asks_for_batches`` as in ``QueryProfile``. Spark's current time is excluded: a batch has its
    ``offsets/`` entry's time, also in a replay (``MicroBatchExecution``, ``CurrentBatchTimestamp``).

    From the optimised plan: without unused columns, and with filters at their final place.
    """
    analysed = analysed_plan(frame)
    if not any(keeps_state(node) for node in nodes_of(analysed)):
        return (), (), False, False
    with active(frame.sparkSession):
        plan = _optimised(frame.sparkSession, analysed)
    stateful = [node for node in nodes_of(plan) if keeps_state(node)]
    return (
        tuple(dict.fromkeys(_below(plan, reaches=False))),
        tuple(dict.fromkeys(name for node in stateful for name in _by_order(node))),
        any(
            one.children().isEmpty() and not is_streaming_source(one) and class_name(one) not in _FIXED_BATCH
            for node in stateful
            for one in _with_subqueries(node)
        ),
        any(_asks_for_batches(node, output_mode) for node in stateful),
    )


def _asks_for_batches(node: Any, output_mode: str) -> bool:
    """Return whether Spark runs a batch without data for this operator when the watermark advances.

    Source: ``shouldRunAnotherBatch`` of the physical operators, Spark 3.5-4.3. Other operators, such as a limit, never
    ask.
    """
    name = class_name(node)
    if name == "Aggregate":
        return output_mode != "complete"
    if name == "Join":
        return evicts_by_time(node)
    if name.startswith("FlatMapGroups"):
        return "NoTimeout" not in str(node.timeout().getClass().getName())
    if name.startswith("TransformWithStateInP"):
        # The operators for Python ask in each time mode, the operator of the JVM only in those with timers.
        return True
    if name.startswith("TransformWithState"):
        return "NoTime" not in str(node.timeMode().getClass().getName())
    return name.startswith("Deduplicate")


def _with_subqueries(plan: Any) -> Iterator[Any]:
    for node in nodes_of(plan):
        yield node
        for subquery in elements(node.subqueries()):
            yield from _with_subqueries(subquery)


def _by_order(node: Any) -> Iterator[str]:
    if class_name(node) == "Aggregate":
        for expression in _in_state(node):
            for part in json.loads(expression.toJSON()):
                name = _BY_ORDER.get(part["class"].rpartition(".")[2])
                # A mode with an order chooses by it where several values are equally frequent.
                if name is not None and "reverseOpt" not in part:
                    yield name


def _below(node: Any, *, reaches: bool) -> Iterator[str]:
    reaches = reaches or keeps_state(node)
    if reaches:
        if class_name(node) == "Sample":
            yield "sample"
        for expression in _in_state(node):
            yield from filter(None, map(_random_name, json.loads(expression.toJSON())))
    for child in elements(node.children()):
        yield from _below(child, reaches=reaches)


def _in_state(node: Any) -> Iterator[Any]:
    """The expressions that may reach state. An aggregation's other expressions are computed from its result."""
    if class_name(node) != "Aggregate":
        yield from elements(node.expressions())
        return
    yield from elements(node.groupingExpressions())
    for expression in elements(node.aggregateExpressions()):
        yield from (one for one in _with_parts(expression) if class_name(one) == "AggregateExpression")


def _with_parts(expression: Any) -> Iterator[Any]:
    yield expression
    for child in elements(expression.children()):
        yield from _with_parts(child)


def _random_name(part: dict[str, Any]) -> str | None:
    name = part["class"].rpartition(".")[2]
    if name == "PythonUDF" and part.get("udfDeterministic") is False:
        return str(part.get("name", "a function that is declared as not deterministic"))
    return _RANDOM.get(name)
