"""What the state of a query is made of that is another value each time it is computed: no replay makes it again.

Spark's current time is none of it: a batch has the time that its entry in ``offsets/`` records, and a replay runs it
with this entry (``MicroBatchExecution``, ``CurrentBatchTimestamp``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from slackwater.runtime.logical_plan import analysed_plan, class_name, elements, nodes_of
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


def random_below_state(frame: DataFrame) -> tuple[str, ...]:
    """The names of random functions whose values reach a stateful operator, in the order of the plan.

    Read from the optimised plan, which has only columns that are used, and filters where Spark applies them.
    """
    analysed = analysed_plan(frame)
    if not any(keeps_state(node) for node in nodes_of(analysed)):
        return ()
    plan = frame.sparkSession._jsparkSession.sessionState().optimizer().execute(analysed)
    return tuple(dict.fromkeys(_below(plan, reaches=False)))


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
