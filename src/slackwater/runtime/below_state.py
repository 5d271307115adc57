"""What the state of a query is made of that a replay may compute otherwise: random values, the order of rows, tables.

Spark's current time is none of it: a batch has the time that its entry in ``offsets/`` records, and a replay runs it
with this entry (``MicroBatchExecution``, ``CurrentBatchTimestamp``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slackwater.runtime.logical_plan import analysed_plan, class_name, elements, is_streaming_source, nodes_of
from slackwater.runtime.stream_session import active
from slackwater.runtime.unsupported import keeps_state

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RANDOM = {
    "Rand": "rand",
    "Randn": "randn",
    "RandStr": "randstr",
    "Uniform": "uniform",
    "Uuid": "uuid",
    "Shuffle": "shuffle",
    "MonotonicallyIncreasingID": "monotonically_increasing_id",
    "SparkPartitionID": "spark_partition_id",
}
"""Expressions of Spark. A seed fixes none of them: which rows share a partition, and their order, is not fixed."""

BY_ORDER = {
    "First": "first",
    "Last": "last",
    "CollectList": "collect_list",
    "ListAgg": "listagg",
    "MaxBy": "max_by",
    "MinBy": "min_by",
    "Mode": "mode",
}
"""Aggregates whose result depends on the order of the rows, of some only between equal ones. ``any_value`` is First.

The elements of a ``collect_set`` can have another order, too, but they are the same ones.
"""
FIXED_BATCH = frozenset({"LocalRelation", "OneRowRelation", "Range"})
"""Batch relations whose rows are in the plan."""


@dataclass(frozen=True, slots=True)
class BelowState:
    """What reaches stateful operators, in the order of the plan.

    ``random``: names of functions with another value each time. ``by_order``: names of aggregates whose result depends
    on the order of rows. ``reads_tables``: batch relations are read, in each batch as they are then.
    """

    random: tuple[str, ...] = ()
    by_order: tuple[str, ...] = ()
    reads_tables: bool = False


def below_state(frame: DataFrame) -> BelowState:
    """What of a query's state a replay may compute otherwise.

    Read from the optimised plan, which has only columns that are used, and filters where Spark applies them.
    """
    analysed = analysed_plan(frame)
    if not any(keeps_state(node) for node in nodes_of(analysed)):
        return BelowState()
    with active(frame.sparkSession):
        plan = frame.sparkSession._jsparkSession.sessionState().optimizer().execute(analysed)
    stateful = [node for node in nodes_of(plan) if keeps_state(node)]
    return BelowState(
        tuple(dict.fromkeys(_below(plan, reaches=False))),
        tuple(dict.fromkeys(name for node in stateful for name in _by_order(node))),
        any(_reads_table(one) for node in stateful for one in with_subqueries(node)),
    )


def with_subqueries(plan: Any) -> Iterator[Any]:
    """As ``nodes_of``, with the plans of subqueries."""
    for node in nodes_of(plan):
        yield node
        for subquery in elements(node.subqueries()):
            yield from with_subqueries(subquery)


def _by_order(node: Any) -> Iterator[str]:
    """The aggregates of a stateful node whose result depends on the order of rows."""
    if class_name(node) == "Aggregate":
        for expression in _in_state(node):
            for part in json.loads(expression.toJSON()):
                name = BY_ORDER.get(part["class"].rpartition(".")[2])
                # A mode with an order chooses by it where several values are equally frequent.
                if name is not None and "reverseOpt" not in part:
                    yield name


def _reads_table(node: Any) -> bool:
    is_leaf = bool(node.children().isEmpty())
    return is_leaf and not is_streaming_source(node) and class_name(node) not in FIXED_BATCH


def _below(node: Any, *, reaches: bool) -> Iterator[str]:
    """The random functions at and below a node; ``reaches``: what it returns reaches state."""
    reaches = reaches or keeps_state(node)
    if reaches:
        if class_name(node) == "Sample":
            yield "sample"
        for expression in _in_state(node):
            yield from filter(None, map(_random_name, json.loads(expression.toJSON())))
    for child in elements(node.children()):
        yield from _below(child, reaches=reaches)


def _in_state(node: Any) -> Iterator[Any]:
    """The expressions of a node whose values may reach state. An aggregation's others are computed of its result."""
    if class_name(node) != "Aggregate":
        yield from elements(node.expressions())
        return
    yield from elements(node.groupingExpressions())
    for expression in elements(node.aggregateExpressions()):
        yield from (one for one in _parts(expression) if class_name(one) == "AggregateExpression")


def _parts(expression: Any) -> Iterator[Any]:
    yield expression
    for child in elements(expression.children()):
        yield from _parts(child)


def _random_name(part: dict[str, Any]) -> str | None:
    name = part["class"].rpartition(".")[2]
    if name == "PythonUDF" and part.get("udfDeterministic") is False:
        return str(part.get("name", "a function that is declared as not deterministic"))
    return RANDOM.get(name)
