"""Parses Spark's JSON of a query plan (``TreeNode.toJSON``).

A tree is a preorder list of nodes with their numbers of children. A value that Spark cannot write, such as a function,
is null.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

CLASS = "class"
CHILDREN = "num-children"
PYTHON_FUNCTIONS = frozenset({"PythonUDF", "PythonUDAF", "PythonUDTF"})
"""Expressions of the user's Python functions, with the field ``name``."""


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A node of a plan or expression: its class's simple name, fields and children."""

    name: str
    fields: Mapping[str, Any]
    children: tuple[TreeNode, ...] = ()

    def expressions(self, field: str) -> list[TreeNode]:
        return [parse_tree(tree) for tree in _trees(self.fields.get(field))]

    def all_expressions(self) -> Iterator[TreeNode]:
        for field in self.fields:
            for tree in self.expressions(field):
                yield from tree.walk()

    def walk(self) -> Iterator[TreeNode]:
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += reversed(node.children)


def parse_plan(text: str) -> TreeNode:
    """Raises ValueError."""
    return parse_tree(json.loads(text))


def parse_tree(nodes: list[dict[str, Any]]) -> TreeNode:
    """Raises ValueError if the numbers of children do not fit."""
    waiting: list[TreeNode] = []
    # From the last node back, so that the children of a node are there before it.
    for fields in reversed(nodes):
        count = int(fields[CHILDREN])
        if count > len(waiting):
            raise ValueError(f"a node of {fields[CLASS]} has {count} children, of which {len(waiting)} follow")
        children = tuple(waiting.pop() for _ in range(count))
        waiting.append(TreeNode(simple_name(str(fields[CLASS])), fields, children))
    if len(waiting) != 1:
        raise ValueError(f"one tree expected, {len(waiting)} found")
    return waiting[0]


def simple_name(qualified: str) -> str:
    """A Scala class or object without its package: ``LeftOuter``."""
    return qualified.rstrip("$").rsplit(".", 1)[-1].rsplit("$", 1)[-1]


def object_name(value: Any) -> str:
    return simple_name(str(value["object"])) if isinstance(value, Mapping) and "object" in value else ""


def plan_in(expression: TreeNode) -> TreeNode | None:
    plan = next(_trees(expression.fields.get("plan")), None)
    return None if plan is None else parse_tree(plan)


def _trees(value: Any) -> Iterator[list[dict[str, Any]]]:
    if not isinstance(value, list) or not value:
        return
    if isinstance(value[0], Mapping):
        if CLASS in value[0]:
            yield value
        return
    for one in value:
        yield from _trees(one)
