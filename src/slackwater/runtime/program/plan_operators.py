"""Follows rows through a plan to its stateful operators: their state and output.

A filter above an aggregation or join counts as below if Spark's optimiser pushes it down
(``PushPredicateThroughNonJoin``, ``PushPredicateThroughJoin``): the state then lacks the rows. Unread columns do not
count, as Spark prunes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from slackwater.core.program import OperatorKind, Watermark
from slackwater.formats.plan_json import TreeNode, object_name
from slackwater.runtime.program.plan_expressions import (
    Ref,
    Value,
    attribute_id,
    canonical,
    conjuncts,
    merged,
    type_name,
)

PUSHED_SIDES: Mapping[str, tuple[str, ...]] = {
    "inner": ("left", "right"),
    "left outer": ("left",),
    "right outer": ("right",),
    "left semi": ("left",),
}
"""The sides of a join before which Spark may apply a filter above it."""
CONDITION_SIDES: Mapping[str, tuple[str, ...]] = {
    "inner": ("left", "right"),
    "left outer": ("right",),
    "right outer": ("left",),
    "left semi": ("left", "right"),
}
"""The sides before which Spark may apply an operand of the join's own condition that reads only that side."""

Side = Literal["", "left", "right"]


@dataclass
class Branch:
    """Rows from a source (``operator`` ``-1``) or operator. ``functions`` are Python classes that read the source."""

    base: str
    columns: dict[int, Value]
    streaming: bool
    operator: int = -1
    steps: tuple[Value, ...] = ()
    filters: dict[str, Value] = field(default_factory=dict)
    watermarks: tuple[Watermark, ...] = ()
    functions: frozenset[str] = frozenset()

    def with_columns(self, columns: dict[int, Value], *steps: Value) -> Branch:
        return replace(self, columns=columns, steps=(*self.steps, *steps), filters=dict(self.filters))


@dataclass
class PlanOperator:
    """A stateful operator; the nodes above decide which rows it keeps."""

    number: int
    order: int
    kind: OperatorKind
    inputs: list[tuple[Side, Branch]]
    keys: list[Value] = field(default_factory=list)
    aggregates: dict[str, Value] = field(default_factory=dict)
    conditions: dict[str, Value] = field(default_factory=dict)
    join_type: str = ""
    state_schema: tuple[str, ...] = ()
    output_schema: tuple[str, ...] = ()
    settings: dict[str, str] = field(default_factory=dict)
    function: str = ""
    parts: dict[tuple[str, str], Value] = field(default_factory=dict)
    """The computation of each part of the output, by role and part."""
    given: list[Value] = field(default_factory=list)
    """The arguments of a function."""


class Reading:
    def __init__(self, *, limits: bool) -> None:
        self.limits = limits
        """Whether a limit keeps state: in append mode."""
        self.operators: list[PlanOperator] = []
        self.used: set[Ref] = set()

    def add(self, order: int, kind: OperatorKind, inputs: list[tuple[Side, Branch]]) -> PlanOperator:
        self.operators.append(PlanOperator(len(self.operators), order, kind, inputs))
        return self.operators[-1]

    def filter(self, branch: Branch, conjunct: Value) -> None:
        """Apply a filter as far below as Spark does."""
        operator = self.operators[branch.operator] if branch.operator >= 0 else None
        roles = {ref.role for ref in conjunct.refs if ref.operator == branch.operator}
        if operator is None or not roles or conjunct.random:
            self.keep(branch.filters, conjunct)
        elif operator.kind == "aggregate" and roles == {"key"}:
            self.push(operator, "", conjunct)
        elif operator.kind == "join":
            self.filter_join(operator, branch, conjunct, roles)
        else:
            self.keep(branch.filters, conjunct)

    def push(self, operator: PlanOperator, side: str, conjunct: Value) -> None:
        """Apply a filter on an operator's output to a side of its input."""
        for name, below in operator.inputs:
            if name == side:
                self.filter(below, self.lowered(operator, conjunct))

    def filter_join(self, operator: PlanOperator, branch: Branch, conjunct: Value, roles: set[str]) -> None:
        if len(roles) == 1 and (side := next(iter(roles))) in PUSHED_SIDES.get(operator.join_type, ()):
            self.push(operator, side, conjunct)
        elif operator.join_type == "inner" and roles == {"left", "right"}:
            self.keep(operator.conditions, conjunct)
        else:
            self.keep(branch.filters, conjunct)

    def keep(self, filters: dict[str, Value], conjunct: Value) -> None:
        if conjunct.text != "true":
            filters[conjunct.text] = conjunct
            self.use([conjunct])

    def lowered(self, operator: PlanOperator, value: Value) -> Value:
        mine = {ref for ref in value.refs if ref.operator == operator.number}
        below = [operator.parts[ref.role, ref.part].refs for ref in mine if (ref.role, ref.part) in operator.parts]
        return value._replace(refs=(value.refs - mine).union(*below))

    def use(self, values: Iterable[Value]) -> None:
        waiting = [ref for value in values for ref in value.refs]
        while waiting:
            ref = waiting.pop()
            if ref not in self.used:
                self.used.add(ref)
                part = self.operators[ref.operator].parts.get((ref.role, ref.part))
                waiting += part.refs if part is not None else ()


def above(operator: PlanOperator, columns: dict[int, Value]) -> Branch:
    watermarks = dict.fromkeys(watermark for _, branch in operator.inputs for watermark in branch.watermarks)
    return Branch(f"operator {operator.number}", columns, True, operator.number, watermarks=tuple(watermarks))


def as_parts(operator: PlanOperator, role: str, columns: Mapping[int, Value]) -> dict[int, Value]:
    found: dict[int, Value] = {}
    for number, value in columns.items():
        operator.parts[role, str(number)] = value
        found[number] = value._replace(refs=frozenset({Ref(operator.number, role, str(number))}))
    return found


def combined(branches: list[Branch]) -> dict[int, Value]:
    found: dict[int, Value] = {}
    for number, first in branches[0].columns.items():
        values = [branch.columns.get(number, first) for branch in branches]
        texts = dict.fromkeys(value.text for value in values)
        found[number] = (
            first if len(texts) == 1 else merged(" | ".join(texts), values)._replace(name=first.name, type=first.type)
        )
    return found


FUNCTION_STATE: Mapping[str, OperatorKind] = {
    "FlatMapGroupsInPandasWithState": "pandas-state",
    "FlatMapGroupsWithState": "groups-with-state",
    "TransformWithState": "transform-with-state",
    "TransformWithStateInPandas": "transform-with-state",
    "TransformWithStateInPySpark": "transform-with-state",
}

JOIN_WORDS = {
    "Inner": "inner",
    "Cross": "inner",
    "LeftOuter": "left outer",
    "RightOuter": "right outer",
    "FullOuter": "full outer",
    "LeftSemi": "left semi",
    "LeftAnti": "left anti",
}
LEFT_ONLY = ("left semi", "left anti")


def stateful(reading: Reading, node: TreeNode, order: int, below: list[Branch]) -> Branch | None:
    columns = combined(below)
    inputs: list[tuple[Side, Branch]] = [("", branch) for branch in below]
    if node.name in ("Aggregate", "Distinct"):
        return _aggregate(reading, node, reading.add(order, "aggregate", inputs), columns)
    if node.name in ("Deduplicate", "DeduplicateWithinWatermark"):
        within = node.name == "DeduplicateWithinWatermark"
        operator = reading.add(order, "deduplicate-within-watermark" if within else "deduplicate", inputs)
        operator.keys = [canonical(key, columns) for key in node.expressions("keys")]
        reading.use(operator.keys)
        return above(operator, columns)
    if node.name == "GlobalLimit" and reading.limits:
        operator = reading.add(order, "limit", inputs)
        operator.settings["limit"] = canonical(node.expressions("limitExpr")[0], columns).text
        return above(operator, columns)
    if node.name in FUNCTION_STATE:
        return _function_state(reading, node, reading.add(order, FUNCTION_STATE[node.name], inputs), columns)
    return None


def _aggregate(reading: Reading, node: TreeNode, operator: PlanOperator, columns: dict[int, Value]) -> Branch:
    """Keys, aggregates in the order of Spark's buffers, and output."""
    # Spark runs it as an aggregation by all columns (``ReplaceDistinctWithAggregate``).
    if node.name == "Distinct":
        operator.keys = list(columns.values())
        reading.use(operator.keys)
        return above(operator, as_parts(operator, "key", columns))
    named = node.expressions("aggregateExpressions")
    operator.keys = [canonical(key, columns) for key in node.expressions("groupingExpressions")]
    reading.use(operator.keys)
    found: dict[int, Value] = {}
    for (number, value), expression in zip(outputs(named, columns), named, strict=True):
        calls = [canonical(one, columns) for one in expression.walk() if one.name == "AggregateExpression"]
        for call in calls:
            # Spark computes equal aggregates once (``PhysicalAggregation``): the state has one buffer for them.
            operator.aggregates.setdefault(call.text, call._replace(name=value.name))
            operator.parts["aggregate", call.text] = call
        if not calls:
            operator.parts["key", value.text] = value
            operator.keys = [key._replace(name=value.name) if key.text == value.text else key for key in operator.keys]
        refs = [Ref(operator.number, "aggregate", call.text) for call in calls]
        found[number] = value._replace(refs=frozenset(refs or [Ref(operator.number, "key", value.text)]))
    return above(operator, found)


def _function_state(reading: Reading, node: TreeNode, operator: PlanOperator, columns: dict[int, Value]) -> Branch:
    """A user function with state: ``applyInPandasWithState``, ``transformWithState``."""
    operator.keys = [canonical(key, columns) for key in node.expressions("groupingAttributes")]
    if count := int(node.fields.get("groupingAttributesLen") or 0):
        # PySpark's transformWithState: the first columns of the projection below it.
        keys = node.children[0].expressions("projectList")[:count]
        operator.keys = [columns[attribute_id(key)] for key in keys if attribute_id(key) in columns]
    function = node.expressions("functionExpr")
    if function:
        operator.function = str(function[0].fields.get("name", ""))
        operator.given = [canonical(child, columns) for child in function[0].children]
    reading.use([*operator.keys, *operator.given])
    schema = node.fields.get("stateType")
    if isinstance(schema, Mapping):
        fields = schema.get("fields") or ()
        operator.state_schema = tuple(f"{one['name']} {type_name(one['type'])}" for one in fields)
    outputs = node.expressions("outputAttrs") or node.expressions("output")
    operator.output_schema = tuple(f"{one.fields['name']} {type_name(one.fields['dataType'])}" for one in outputs)
    for setting in ("timeout", "timeMode", "outputMode"):
        if name := object_name(node.fields.get(setting)):
            operator.settings[setting] = name
    made: dict[int, Value] = {}
    for one in outputs:
        name = str(one.fields["name"])
        text = f"{operator.function or operator.kind}.{name}"
        made[attribute_id(one)] = Value(text, name, type_name(one.fields["dataType"]), reads=frozenset({text}))
    return above(operator, made)


def join_of_streams(reading: Reading, node: TreeNode, order: int, left: list[Branch], right: list[Branch]) -> Branch:
    """Add a stream-stream join. Conjuncts on a side become its filters, as in Spark."""
    operator = reading.add(order, "join", [("left", one) for one in left])
    operator.inputs += [("right", one) for one in right]
    word = operator.join_type = join_word(node)
    sides = {side: as_parts(operator, side, combined(rows)) for side, rows in (("left", left), ("right", right))}
    columns = {**sides["left"], **sides["right"]}
    for condition in node.expressions("condition"):
        for conjunct in conjuncts(condition, columns):
            roles = {ref.role for ref in conjunct.refs if ref.operator == operator.number}
            if len(roles) == 1 and (side := next(iter(roles))) in CONDITION_SIDES.get(word, ()):
                reading.push(operator, side, conjunct)
            else:
                reading.keep(operator.conditions, conjunct)
    return above(operator, sides["left"] if word in LEFT_ONLY else columns)


def join_word(node: TreeNode) -> str:
    name = object_name(node.fields.get("joinType"))
    return JOIN_WORDS.get(name, name)


def outputs(expressions: Iterable[TreeNode], columns: Mapping[int, Value]) -> Iterator[tuple[int, Value]]:
    for expression in expressions:
        value = canonical(expression, columns)
        yield (
            attribute_id(expression),
            value._replace(name=str(expression.fields.get("name", value.name)), literal=value.literal),
        )
