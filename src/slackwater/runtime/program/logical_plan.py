"""Walks a query's analysed logical plan, and reads its pickled Python functions, through the driver's JVM handle."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog
from py4j.java_gateway import get_field
from pyspark import SparkContext

from slackwater.core.masking import KNOWN_SECRETS
from slackwater.formats.plan_json import PYTHON_FUNCTIONS, TreeNode, plan_in
from slackwater.runtime.program.function_values import Taken
from slackwater.runtime.program.pickled import (
    BROADCAST,
    MOST_BYTES,
    NOT_READ,
    Made,
    Named,
    broadcast_with,
    read_pickled,
)
from slackwater.sources.common.contract import scala_map

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def active_jvm() -> Any:
    return SparkContext._jvm


def java_field(value: Any, name: str) -> Any:
    """A private Scala field, made accessible. Raises LookupError."""
    java_class = value.getClass()
    while java_class is not None:
        for field in java_class.getDeclaredFields():
            if str(field.getName()).rpartition("$$")[2] == name:
                field.setAccessible(True)
                return field
        java_class = java_class.getSuperclass()
    raise LookupError(f"{name} in {value.getClass().getSimpleName()}")


WATERMARK = "EventTimeWatermark"


def analysed_plan(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution().analyzed()


def nodes_of(plan: Any) -> Iterator[Any]:
    """The nodes of a plan or an expression in preorder; a plan's leaves are in the order of Spark's source numbers."""
    yield plan
    for child in elements(plan.children()):
        yield from nodes_of(child)


def class_name(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def is_streaming_source(node: Any) -> bool:
    return class_name(node).startswith("StreamingRelation")


def streaming_sources(plan: Any) -> list[Any]:
    """The streaming sources, in the order of lines in ``offsets/``.

    A DataFrame that is read twice is listed twice, as it has two lines.
    """
    return [node for node in nodes_of(plan) if is_streaming_source(node)]


def source_logs(plan: Any) -> list[str]:
    """The source log number of each source; equal sources share a number."""
    distinct: list[Any] = []
    numbers = []
    for source in streaming_sources(plan):
        distinct += [] if source in distinct else [source]
        numbers.append(str(distinct.index(source)))
    return numbers


def delay_ms(watermark: Any) -> int:
    """The delay in milliseconds. A month counts as 31 days, as in ``EventTimeWatermark.getDelayMs``."""
    delay = watermark.delay()
    months, days, microseconds = (int(get_field(delay, name)) for name in ("months", "days", "microseconds"))
    return (months * 31 + days) * 86_400_000 + microseconds // 1000


def source_options(relation: Any) -> dict[str, str]:
    if class_name(relation) == "StreamingRelation":
        options = scala_map(relation.dataSource().options())
    else:
        options = {str(key): str(value) for key, value in relation.extraOptions().asCaseSensitiveMap().items()}
    KNOWN_SECRETS.remember_all(options)
    return options


def elements(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(index) for index in range(sequence.size()))


log = structlog.get_logger(__name__)

Nodes = Sequence[tuple[TreeNode, Any]]
"""The nodes of a plan, in its JSON and in the JVM."""


def expressions_of(
    nodes: Nodes, is_wanted: Callable[[TreeNode], bool], *, of_subqueries: bool = False
) -> Iterator[tuple[TreeNode, Any]]:
    """The JVM's expressions for the nodes, with few calls. Raises ValueError if JSON and JVM differ."""
    reading = _Expressions(is_wanted, of_subqueries)
    for tree, node in nodes:
        yield from reading.of_node(tree, node)


class _Expressions:
    def __init__(self, is_wanted: Callable[[TreeNode], bool], of_subqueries: bool) -> None:
        self._is_wanted = is_wanted
        self._of_subqueries = of_subqueries
        self._on_the_way: dict[int, TreeNode] = {}
        self._plans: dict[int, TreeNode] = {}

    def of_node(self, tree: TreeNode, node: Any) -> Iterator[tuple[TreeNode, Any]]:
        trees = [one for field in tree.fields for one in tree.expressions(field)]
        found = [self._find(one) for one in trees]
        if not any(found):
            return
        expressions = list(elements(node.expressions()))
        if len(expressions) != len(trees):
            raise ValueError(f"{tree.name} has {len(expressions)} expressions, and {len(trees)} in its JSON")
        for one, expression in zip(trees, expressions, strict=True):
            yield from self._below(one, expression)

    def _find(self, tree: TreeNode) -> bool:
        below = [self._find(child) for child in tree.children]
        plan = plan_in(tree) if self._of_subqueries else None
        if plan is not None and any(self._is_wanted(one) for node in plan.walk() for one in node.all_expressions()):
            self._plans[id(tree)] = plan
        if any(below) or id(tree) in self._plans or self._is_wanted(tree):
            self._on_the_way[id(tree)] = tree
            return True
        return False

    def _below(self, tree: TreeNode, expression: Any) -> Iterator[tuple[TreeNode, Any]]:
        if id(tree) not in self._on_the_way:
            return
        if self._is_wanted(tree):
            yield tree, expression
        if id(tree) in self._plans:
            for inner, node in zip(self._plans[id(tree)].walk(), nodes_of(expression.plan()), strict=True):
                yield from self.of_node(inner, node)
        children = expression.children() if tree.children else None
        for place, child in enumerate(tree.children):
            if id(child) in self._on_the_way and children is not None:
                yield from self._below(child, children.apply(place))


def taken_by_functions(nodes: Nodes, jvm: Any, taken: Callable[[object], Taken]) -> dict[str, Taken]:
    """The values that the plan's functions take with them; empty if unreadable.

    Functions with equal names, such as lambdas, share digests.
    """
    found: dict[str, list[tuple[str, Taken]]] = {}
    unread = set()
    try:
        calls = list(expressions_of(nodes, lambda one: one.name in PYTHON_FUNCTIONS, of_subqueries=True))
    except NOT_READ as error:
        log.debug("the values of functions cannot be compared", error=str(error))
        return {}
    for tree, expression in calls:
        name = str(tree.fields.get("name", ""))
        try:
            function = _command(expression.func(), jvm)
            of = getattr(function, "__self__", None)
            state = of.state if isinstance(of, Made) else None
            processor = state.get("_stateful_processor") if isinstance(state, dict) else None
            if isinstance(processor, Made):
                name, function = processor.of.name, processor
            found.setdefault(name, []).append((str(expression.sql()), taken(function)))
        except NOT_READ as error:
            log.debug("the values of a function cannot be compared", function=name, error=str(error))
            unread.add(name)
    return {name: together(each) for name, each in found.items() if name not in unread}


def data_source(format_name: str, spark: SparkSession) -> Any:
    """A Python data source's pickled class; ``None`` if unknown to the session. Raises an exception of ``NOT_READ``."""
    if str(spark.version).startswith("3."):
        return None
    session: Any = spark
    known = session._jsparkSession.sessionState().dataSourceManager()
    if not known.dataSourceExists(format_name):
        return None
    return _command(known.lookupDataSource(format_name).dataSourceCls(), session._jvm)


def name_of(function: Any) -> str:
    of = getattr(function, "of", None)
    name = of.name if isinstance(of, Named) else getattr(function, "__name__", type(function).__name__)
    return str(name).rpartition(".")[2]


def together(calls: Sequence[tuple[str, Taken]]) -> Taken:
    digests: dict[str, set[tuple[str, str]]] = {}
    for call, taken in calls:
        for name, digest in taken.values.items():
            digests.setdefault(name, set()).add((call, digest))
    return Taken(
        {name: _one_digest(sorted(digests[name])) for name in sorted(digests)},
        frozenset[str]().union(*(taken.outside for _, taken in calls)),
        _one_digest(sorted((call, taken.code) for call, taken in calls)),
    )


def _one_digest(digests: Sequence[tuple[str, str]]) -> str:
    distinct = {digest for _, digest in digests}
    return digests[0][1] if len(distinct) == 1 else sha256(json.dumps(digests).encode()).hexdigest()[:16]


def _command(function: Any, jvm: Any) -> object:
    def broadcast(number: int) -> object:
        every = function.broadcastVars()
        found = next((one for one in (every.get(place) for place in range(every.size())) if one.id() == number), None)
        if found is None:
            raise LookupError(f"broadcast variable {number}")
        file = Path(str(found.value().path()))
        if file.stat().st_size > MOST_BYTES:
            raise ValueError("the value of the broadcast variable is too large to be compared")
        return broadcast_with(read_pickled(file.read_bytes(), broadcast))

    data = bytes(function.command().toArray(jvm.scala.reflect.ClassTag.Byte()))
    command = read_pickled(data, broadcast)
    if isinstance(command, Made) and command.of == BROADCAST:
        # Spark broadcasts a large function.
        command = read_pickled(command.arguments[0], broadcast)
    return command[0] if isinstance(command, tuple) else command
