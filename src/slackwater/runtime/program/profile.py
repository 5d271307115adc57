"""Reads a query's profile from Spark's logical plan, through the driver's JVM handle.

Its digest covers the part that decides which rows and event times reach the watermarks: recorded event times are
evidence only for the code that read them.

Source: ``EventTimeWatermark``, ``TimeWindow`` and the plans in ``UnsupportedOperationChecker``, Spark 3.5-4.3.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
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
from slackwater.runtime.program.unsupported import STATEFUL, keeps_state, late_in_chain
from slackwater.runtime.session.settings import active, with_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_PROFILED = STATEFUL | {"GlobalLimit"}
_RANDOM = {
    "Rand": "rand", "Randn": "randn", "RandStr": "randstr", "Uniform": "uniform", "Uuid": "uuid", "Shuffle": "shuffle",
    "MonotonicallyIncreasingID": "monotonically_increasing_id", "SparkPartitionID": "spark_partition_id",
}  # fmt: skip
"""Spark's random expressions. A seed does not make them repeatable: partitions and row order vary."""

_BY_ORDER = {
    "First": "first", "Last": "last", "CollectList": "collect_list", "ListAgg": "listagg", "MaxBy": "max_by",
    "MinBy": "min_by", "Mode": "mode",
}  # fmt: skip
"""Aggregates whose result depends on the order of rows, for some only among equal rows. ``any_value`` is First.

The elements of a ``collect_set`` can have a different order, but they are the same elements.
"""
_FIXED_BATCH = frozenset({"LocalRelation", "OneRowRelation", "Range"})
"""Batch relations whose rows are in the plan."""


def profile_of(frame: DataFrame, code: str | None = None, output_mode: str = "append") -> QueryProfile:
    plan = analysed_plan(frame)
    nodes = list(nodes_of(plan))
    stateful = [node for node in nodes if keeps_state(node, _PROFILED)]
    operators = tuple(map(class_name, stateful))
    delays = tuple(delay_ms(node) for node in nodes if class_name(node) == WATERMARK)
    windows = windows_of(nodes)
    sources = tuple(str(source.sourceName()) for source in streaming_sources(plan))
    retention = None if operators else 0
    if set(operators) == {"Aggregate"}:
        retention = window_retention_ms(nodes, stateful, windows)
    elif operators == ("Join",):
        retention = join_retention_ms(nodes, stateful[0])
    digest, logs = rows_digest(frame, code), tuple(source_logs(plan))
    random, by_order, reads_tables, asks_for_batches = _below_state(frame, output_mode)
    aggregates = stateful if operators == ("Aggregate",) else []
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
    watermarks = list(_outermost(optimised, lambda node: class_name(node) == WATERMARK))
    nodes = [node for watermark in watermarks for node in _with_subqueries(watermark)]
    # Of the analysed plan: the optimiser replaces the current time by a literal (``ComputeCurrentTime``).
    reads_clock = CURRENT_TIME.search(str(analysed.toString())) is not None
    if not watermarks or reads_clock or not all(_node_shows_everything(node) for node in nodes):
        return None
    described = [[_describe(node) for node in _with_subqueries(watermark)] for watermark in watermarks]
    classes = (name for node in nodes for name, _ in _parts(elements(node.expressions())))
    if any(map(PYTHON.search, (*map(class_name, nodes), *classes))):
        if code is None:
            return None
        described.append([{"node": "Python", "code": code}])
    numbers: dict[str, str] = {}
    for node in (node for subtree in described for node in subtree if "expressions" in node):
        for number in EXPRESSION_ID.findall(node["expressions"]):
            numbers.setdefault(number, f"#{len(numbers)}")
        numbered = EXPRESSION_ID.sub(lambda match: numbers[match[1]], node["expressions"])
        node["expressions"] = ADDRESS.sub("@", numbered)
    return sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()


def _optimised(spark: SparkSession, analysed: Any) -> Any:
    """The optimised plan, with each filter at its final place."""
    return spark._jsparkSession.sessionState().optimizer().execute(analysed)


def _outermost(node: Any, is_wanted: Callable[[Any], bool]) -> Iterator[Any]:
    if is_wanted(node):
        yield node
        return
    for child in elements(node.children()):
        yield from _outermost(child, is_wanted)


def _node_shows_everything(node: Any) -> bool:
    name = class_name(node)
    if OPAQUE_NODE.search(name):
        return False
    if node.children().isEmpty() and not (is_streaming_source(node) or name in KNOWN_LEAVES):
        return False
    return all(
        expression.deterministic() and not any(OPAQUE_EXPRESSION.search(one) for one, _ in _parts([expression]))
        for expression in elements(node.expressions())
    )


def _parts(expressions: Iterable[Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The nodes of expressions, in preorder: class and fields."""
    for expression in expressions:
        for part in json.loads(expression.toJSON()):
            yield part["class"].rpartition(".")[2], part


def _describe(node: Any) -> dict[str, Any]:
    name = class_name(node)
    if is_streaming_source(node):
        options = source_options(node)
        source = {
            "name": str(node.sourceName()),
            "schema": json.loads(node.schema().json()),
            "options": {key: mask_setting(key, options[key]) for key in sorted(options)},
        }
        return {"node": name, "source": source}
    if name == WATERMARK:
        # Its string has an id that is new in each session.
        return {"node": name, "column": str(node.eventTime().name()), "delay_ms": delay_ms(node)}
    return {
        "node": name,
        "expressions": str(node.simpleString(ALL_FIELDS)),
        "literals": [part.get("value") for one, part in _parts(elements(node.expressions())) if one == "Literal"],
    }


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
    random: list[str] = []
    for node in (below for top in _outermost(plan, keeps_state) for below in nodes_of(top)):
        random += ["sample"] if class_name(node) == "Sample" else []
        for name, part in _parts(_in_state(node)):
            if name == "PythonUDF" and part.get("udfDeterministic") is False:
                random.append(str(part.get("name", "a function that is declared as not deterministic")))
            elif name in _RANDOM:
                random.append(_RANDOM[name])
    by_order = [
        _BY_ORDER[name]
        for node in stateful
        if class_name(node) == "Aggregate"
        for name, part in _parts(_in_state(node))
        # A mode with an order chooses by it where several values are equally frequent.
        if name in _BY_ORDER and "reverseOpt" not in part
    ]
    return (
        tuple(dict.fromkeys(random)),
        tuple(dict.fromkeys(by_order)),
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


def _in_state(node: Any) -> Iterator[Any]:
    """The expressions that may reach state. An aggregation's other expressions are computed from its result."""
    if class_name(node) != "Aggregate":
        yield from elements(node.expressions())
        return
    yield from elements(node.groupingExpressions())
    for expression in elements(node.aggregateExpressions()):
        yield from (one for one in nodes_of(expression) if class_name(one) == "AggregateExpression")
