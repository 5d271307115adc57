"""Turns an analysed plan into a program's shapes. Rows are followed as branches, each from a source or operator."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter

from slackwater.core.program import InputShape, OperatorShape, Watermark, Window
from slackwater.formats.plan_json import TreeNode, parse_tree
from slackwater.runtime.program.event_time import implied
from slackwater.runtime.program.plan_expressions import (
    Ref,
    Value,
    attribute_id,
    canonical,
    conjuncts,
    merged,
    type_name,
)
from slackwater.runtime.program.plan_operators import (
    LEFT_ONLY,
    Branch,
    PlanOperator,
    Reading,
    Side,
    join_of_streams,
    join_word,
    outputs,
    stateful,
)

UNCHANGED = frozenset({
    "SubqueryAlias", "ResolvedHint", "UnresolvedHint", "Repartition", "RepartitionByExpression", "RebalancePartitions",
    "Sort", "View", "LocalLimit", "CollectMetrics", "DataFrameDropColumns", "Subquery",
})  # fmt: skip
"""Nodes that pass all rows, with the columns of their child."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf's facts missing in JSON: its expression, and whether it streams.

    ``functions`` are Python classes that read it.
    """

    base: str
    prefix: str
    streaming: bool
    functions: tuple[str, ...] = ()


class Shapes:
    """Reads a plan. ``leaves`` and ``delays_ms`` (watermarks) are in preorder."""

    def __init__(self, leaves: Mapping[int, Leaf], delays_ms: Mapping[int, int], *, limits: bool) -> None:
        self.leaves = leaves
        self.delays_ms = delays_ms
        self.reading = Reading(limits=limits)
        self.definitions: dict[int, TreeNode] = {}
        """The tables of ``WITH`` by their ids."""
        self.reached = 0

    def read(self, root: TreeNode) -> tuple[tuple[OperatorShape, ...], tuple[InputShape, ...]]:
        self.places = {id(node): place for place, node in enumerate(root.walk())}
        branches = self.branches(root)
        for branch in branches:
            self.reading.use([*branch.columns.values(), *branch.filters.values(), *branch.steps])
        rows = tuple(self.input_shape(branch, branch.columns.values()) for branch in branches)
        ordered = sorted(self.reading.operators, key=lambda operator: operator.order)
        return tuple(self.operator_shape(operator) for operator in ordered), rows

    # -------------------------------------------------------------------------------------------------------- nodes

    def branches(self, node: TreeNode) -> list[Branch]:
        self.reached += 1
        order = self.reached
        if node.name == "CTERelationRef" and node.fields.get("cteId") in self.definitions:
            return self.reference(node)
        if not node.children:
            return [self.leaf(node)]
        if node.name == "WithCTE":
            return self.with_tables(node)
        if node.name == "Union":
            return self.union(node)
        if node.name == "Join":
            return self.join(node, order)
        below = self.branches(node.children[0])
        if node.name in UNCHANGED:
            return below
        if any(branch.streaming for branch in below):
            operator = stateful(self.reading, node, order, below)
            if operator is not None:
                return [operator]
        passed: Callable[[TreeNode, Branch], Branch] = {
            "Filter": self.filter,
            "Project": self.project,
            "Expand": self.expand,
            "EventTimeWatermark": self.watermark,
            "Generate": self.generate,
        }.get(node.name, self.opaque)
        return [passed(node, branch) for branch in below]

    def filter(self, node: TreeNode, branch: Branch) -> Branch:
        for conjunct in conjuncts(node.expressions("condition")[0], branch.columns):
            self.reading.filter(branch, conjunct)
        return branch

    def leaf(self, node: TreeNode) -> Branch:
        known = self.leaves.get(self.places[id(node)], Leaf(f"relation {node.name}", "", streaming=False))
        columns = dict(_columns(node.expressions("output"), known.prefix))
        return Branch(known.base, columns, known.streaming, functions=frozenset(known.functions))

    def project(self, node: TreeNode, branch: Branch) -> Branch:
        return branch.with_columns(dict(outputs(node.expressions("projectList"), branch.columns)))

    def expand(self, node: TreeNode, branch: Branch) -> Branch:
        projections = [
            [canonical(parse_tree(tree), branch.columns) for tree in trees] for trees in node.fields["projections"]
        ]
        columns: dict[int, Value] = {}
        steps: list[Value] = []
        for place, one in enumerate(node.expressions("output")):
            values = [projection[place] for projection in projections]
            value, texts = values[0], sorted({value.text for value in values})
            if len(texts) > 1:
                value = merged(f"each of ({', '.join(texts)})", values)
                steps.append(value)
            name, type_ = str(one.fields["name"]), type_name(one.fields["dataType"])
            columns[attribute_id(one)] = value._replace(name=name, type=type_)
        return branch.with_columns(columns, *steps)

    def watermark(self, node: TreeNode, branch: Branch) -> Branch:
        column = canonical(node.expressions("eventTime")[0], branch.columns)
        delay = self.delays_ms.get(self.places[id(node)], 0)
        return replace(branch, watermarks=(*branch.watermarks, Watermark(column.text, delay)))

    def generate(self, node: TreeNode, branch: Branch) -> Branch:
        """Add ``explode``: filters on other columns may be above or below."""
        value = canonical(node.expressions("generator")[0], branch.columns)
        step = value._replace(text=f"{'outer ' if node.fields.get('outer') else ''}{value.text}")
        columns = dict(branch.columns)
        for one in node.expressions("generatorOutput"):
            name = str(one.fields["name"])
            columns[attribute_id(one)] = step._replace(text=f"{step.text}.{name}", name=name, literal=False)
        return branch.with_columns(columns, step)

    def opaque(self, node: TreeNode, branch: Branch) -> Branch:
        inner = [
            canonical(one, branch.columns)
            for key in sorted(node.fields)
            for one in ([] if key in ("output", "outputAttrs") else node.expressions(key))
        ]
        self.reading.use([*inner, *branch.filters.values()])
        step = merged(f"{node.name}({', '.join(one.text for one in inner)})", inner)
        where = sorted(
            (one._replace(text=f"where {one.text}") for one in branch.filters.values()), key=attrgetter("text")
        )
        columns = dict(branch.columns)
        if node.name == "Aggregate":
            columns = dict(outputs(node.expressions("aggregateExpressions"), branch.columns))
        elif made := node.expressions("output") or node.expressions("outputAttrs"):
            prefix = inner[0].text.split("(", 1)[0] if inner else node.name
            columns = dict(_columns(made, prefix + ".", step.functions))
        return replace(branch.with_columns(columns, *where, step), filters={}, operator=-1)

    def join(self, node: TreeNode, order: int) -> list[Branch]:
        """A stream-stream join is an operator; a join with a batch relation is a step."""
        left, right = (self.branches(child) for child in node.children)
        streams = [any(branch.streaming for branch in side) for side in (left, right)]
        if streams == [True, True]:
            return [join_of_streams(self.reading, node, order, left, right)]
        rows, other = (left, right[0]) if streams[0] else (right, left[0])
        return [self.join_with_batch(node, branch, other, stream_is_left=streams[0]) for branch in rows]

    def join_with_batch(self, node: TreeNode, branch: Branch, other: Branch, *, stream_is_left: bool) -> Branch:
        left, right = (branch, other) if stream_is_left else (other, branch)
        columns = {**left.columns, **right.columns}
        condition = [value for one in node.expressions("condition") for value in conjuncts(one, columns)]
        self.reading.use([*condition, *other.filters.values()])
        on = " AND ".join(sorted(value.text for value in condition))
        filters = [f"where {text}" for text in sorted(other.filters)]
        joined = ", ".join([other.base, *(step.text for step in other.steps), *filters])
        step = merged(f"{join_word(node)} join with ({joined}) on {on}", condition)
        visible = dict(left.columns) if join_word(node) in LEFT_ONLY else columns
        return branch.with_columns(visible, step)

    def union(self, node: TreeNode) -> list[Branch]:
        children = [self.branches(child) for child in node.children]
        ids = list(children[0][0].columns)
        found: list[Branch] = []
        for branches in children:
            for branch in branches:
                columns = dict(zip(ids, branch.columns.values(), strict=False))
                found.append(branch.with_columns(columns))
        return found

    def with_tables(self, node: TreeNode) -> list[Branch]:
        *tables, query = node.children
        self.definitions |= {table.fields["id"]: table for table in tables}
        return self.branches(query)

    def reference(self, node: TreeNode) -> list[Branch]:
        """A ``WITH`` table, read again as Spark does. Raises ValueError if columns cannot be assigned."""
        ids = [attribute_id(one) for one in node.expressions("output")]
        found = []
        for branch in self.branches(self.definitions[node.fields["cteId"]].children[0]):
            columns = branch.columns
            # Only the ids of the first reference to a table are those of the table.
            if columns.keys() >= set(ids):
                columns = {number: columns[number] for number in ids}
            elif len(columns) == len(ids):
                columns = dict(zip(ids, columns.values(), strict=True))
            else:
                raise ValueError(f"a table of WITH has {len(columns)} columns, and a reference to it {len(ids)}")
            found.append(branch.with_columns(columns))
        return found

    # ------------------------------------------------------------------------------------------------------- shapes

    def operator_shape(self, operator: PlanOperator) -> OperatorShape:
        aggregates = [
            value
            for text, value in operator.aggregates.items()
            if Ref(operator.number, "aggregate", text) in self.reading.used
        ]
        keys, conditions = operator.keys, sorted(operator.conditions)
        if operator.kind == "join":
            keys = [
                one._replace(name="")
                for one in operator.conditions.values()
                # A join key: an equation of the two sides.
                if sorted(
                    sorted({ref.role for ref in refs if ref.operator == operator.number}) for refs in one.operands
                )
                == [["left"], ["right"]]
            ]
            conditions = sorted(operator.conditions.keys() - {key.text for key in keys})
        inputs = tuple(self.operator_input(operator, side, branch) for side, branch in operator.inputs)
        functions = {operator.function} if operator.function else set[str]()
        functions.update(*(value.functions for value in [*keys, *aggregates, *operator.conditions.values()]))
        functions.update(*(one.functions for one in inputs))
        return OperatorShape(
            kind=operator.kind,
            inputs=inputs,
            keys=tuple(value.traced() for value in keys),
            windows=tuple(sorted(_windows(keys), key=attrgetter("text"))),
            aggregates=tuple(value.traced() for value in aggregates),
            join_type=operator.join_type,
            conditions=tuple(conditions),
            state_schema=operator.state_schema,
            output_schema=operator.output_schema,
            settings=dict(operator.settings),
            functions=tuple(sorted(functions)),
        )

    def operator_input(self, operator: PlanOperator, side: Side, branch: Branch) -> InputShape:
        columns: Iterable[Value] = operator.given
        if side:
            columns = [
                value
                for number, value in branch.columns.items()
                if Ref(operator.number, side, str(number)) in self.reading.used
            ]
        return replace(self.input_shape(branch, columns), side=side)

    def input_shape(self, branch: Branch, columns: Iterable[Value]) -> InputShape:
        without = {
            text
            for operator in self.reading.operators
            for window in _windows(operator.keys)
            for text in implied(window)
        }
        read = list(columns)
        filters = [value for text, value in branch.filters.items() if text not in without]
        functions = branch.functions.union(*(value.functions for value in [*read, *filters, *branch.steps]))
        return InputShape(
            branch.base,
            tuple(step.text for step in branch.steps),
            tuple(sorted(value.text for value in filters)),
            tuple(value.traced() for value in read),
            branch.watermarks,
            tuple(sorted(functions)),
        )


def _columns(
    attributes: Iterable[TreeNode], prefix: str, functions: frozenset[str] = frozenset()
) -> Iterator[tuple[int, Value]]:
    for one in attributes:
        name, type_ = str(one.fields["name"]), type_name(one.fields["dataType"])
        text = prefix + name
        yield attribute_id(one), Value(text, name, type_, reads=frozenset({text}), functions=functions)


def _windows(values: Iterable[Value]) -> set[Window]:
    return set[Window]().union(*(value.windows for value in values))
