"""Reads the Python functions of a plan's expressions, as Spark pickled them, from the driver's JVM."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import structlog

from slackwater.formats.plan_json import TreeNode
from slackwater.runtime.logical_plan import elements
from slackwater.runtime.pickled import BROADCAST, MOST_BYTES, NOT_READ, Made, broadcast_with, read_pickled

log = structlog.get_logger(__name__)

PYTHON_FUNCTIONS = frozenset({"PythonUDF", "PythonUDAF"})
Nodes = Sequence[tuple[TreeNode, Any]]
"""The nodes of a plan as they are in its JSON and in the JVM."""


def expressions_of(nodes: Nodes, is_wanted: Callable[[TreeNode], bool]) -> Iterator[tuple[TreeNode, Any]]:
    """The wanted expressions of a plan as they are in its JSON and in the JVM, by as few calls as there can be.

    Raises ValueError where the expressions of both differ.
    """
    for tree, node in nodes:
        trees = [one for field in tree.fields for one in tree.expressions(field)]
        on_the_way: set[int] = set()
        for one in trees:
            _find(one, is_wanted, on_the_way)
        if not on_the_way:
            continue
        expressions = list(elements(node.expressions()))
        if len(expressions) != len(trees):
            raise ValueError(f"{tree.name} has {len(expressions)} expressions, and {len(trees)} in its JSON")
        for one, expression in zip(trees, expressions, strict=True):
            yield from _below(one, expression, is_wanted, on_the_way)


def _find(tree: TreeNode, is_wanted: Callable[[TreeNode], bool], on_the_way: set[int]) -> bool:
    """Whether a part of the expression is wanted; ``on_the_way`` gets the nodes on the way to each."""
    below = [_find(child, is_wanted, on_the_way) for child in tree.children]
    if any(below) or is_wanted(tree):
        on_the_way.add(id(tree))
        return True
    return False


def _below(
    tree: TreeNode, expression: Any, is_wanted: Callable[[TreeNode], bool], on_the_way: set[int]
) -> Iterator[tuple[TreeNode, Any]]:
    if id(tree) not in on_the_way:
        return
    if is_wanted(tree):
        yield tree, expression
    children = expression.children() if tree.children else None
    for place, child in enumerate(tree.children):
        if id(child) in on_the_way and children is not None:
            yield from _below(child, children.apply(place), is_wanted, on_the_way)


def values_of_functions(
    nodes: Nodes, jvm: Any, values: Callable[[object], Mapping[str, str]]
) -> dict[str, dict[str, str]]:
    """The digests of the values of each function by its name; none of a function that cannot be read.

    Functions that share a name, as lambdas do, share the digests: of what each is called with, and its own.
    """
    found: dict[str, list[tuple[str, Mapping[str, str]]]] = {}
    unread = set()
    for tree, expression in expressions_of(nodes, lambda one: one.name in PYTHON_FUNCTIONS):
        name = str(tree.fields.get("name", ""))
        try:
            found.setdefault(name, []).append((str(expression.sql()), values(_command(expression.func(), jvm))))
        except NOT_READ as error:
            log.debug("the values of a function cannot be compared", function=name, error=str(error))
            unread.add(name)
    return {name: _together(each) for name, each in found.items() if name not in unread}


def _together(calls: Iterable[tuple[str, Mapping[str, str]]]) -> dict[str, str]:
    digests: dict[str, set[tuple[str, str]]] = {}
    for call, values in calls:
        for name, digest in values.items():
            digests.setdefault(name, set()).add((call, digest))
    return {name: _one_digest(sorted(digests[name])) for name in sorted(digests)}


def _one_digest(digests: Sequence[tuple[str, str]]) -> str:
    distinct = {digest for _, digest in digests}
    return digests[0][1] if len(distinct) == 1 else sha256(json.dumps(digests).encode()).hexdigest()[:16]


def _command(function: Any, jvm: Any) -> object:
    """The function itself, without the type it returns. Raises one of ``NOT_READ``."""

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
        command = read_pickled(command.contents.arguments[0], broadcast)
    return command[0] if isinstance(command, tuple) else command
