"""Reads what the JSON of a plan leaves out of its expressions: the options of ``from_json``, the bytes of literals.

Spark's ``TreeNode.parseToJson`` writes null for any map, and the address of an array of bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, cast

from slackwater.core.masking import mask_setting
from slackwater.formats.plan_json import TreeNode
from slackwater.runtime.logical_plan import elements
from slackwater.runtime.plan_expressions import LEFT_OUT
from slackwater.sources.common.scala import scala_map

MAP = "options"
"""The field of all expressions that have a map: of JSON, CSV, XML, Avro and Protobuf."""
BYTES = "[B@"
LONGEST = 300
"""Of a text that is kept as it is."""
_LEFT_OUT = re.compile(rf'"{MAP}":null|"value":"{re.escape(BYTES)}')


def with_left_out(plan: str, nodes: Sequence[tuple[TreeNode, Any]]) -> str:
    """The plan with what was left out. ``nodes`` are those of its JSON and of the JVM, in preorder.

    Raises ValueError where the expressions of both differ.
    """
    if not _LEFT_OUT.search(plan):
        return plan
    for tree, node in nodes:
        trees = [one for field in tree.fields for one in tree.expressions(field)]
        wanted: set[int] = set()
        for one in trees:
            _find(one, wanted)
        if wanted:
            expressions = list(elements(node.expressions()))
            if len(expressions) != len(trees):
                raise ValueError(f"{tree.name} has {len(expressions)} expressions, and {len(trees)} in its JSON")
            for one, expression in zip(trees, expressions, strict=True):
                _read(one, expression, wanted)
    return json.dumps([tree.fields for tree, _ in nodes])


def _find(tree: TreeNode, wanted: set[int]) -> bool:
    """Whether a part of the expression was left out; ``wanted`` gets the nodes on the way to each."""
    below = [_find(child, wanted) for child in tree.children]
    if any(below) or _lacks_map(tree) or _lacks_bytes(tree):
        wanted.add(id(tree))
        return True
    return False


def _read(tree: TreeNode, expression: Any, wanted: set[int]) -> None:
    if id(tree) not in wanted:
        return
    fields = cast("dict[str, Any]", tree.fields)
    if _lacks_map(tree):
        fields[LEFT_OUT] = _short(_options(scala_map(expression.options())))
    elif _lacks_bytes(tree):
        fields[LEFT_OUT] = _short(bytes(expression.value()).hex())
    children = expression.children() if tree.children else None
    for place, child in enumerate(tree.children):
        if id(child) in wanted and children is not None:
            _read(child, children.apply(place), wanted)


def _lacks_map(tree: TreeNode) -> bool:
    return MAP in tree.fields and tree.fields[MAP] is None


def _lacks_bytes(tree: TreeNode) -> bool:
    return tree.fields.get("dataType") == "binary" and str(tree.fields.get("value")).startswith(BYTES)


def _options(options: Mapping[str, str]) -> str:
    """The options by their names, which Spark compares without case."""
    return ", ".join(f"{name.lower()} {mask_setting(name, value)}" for name, value in sorted(options.items()))


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:60]}... sha256 {sha256(text.encode()).hexdigest()[:16]}"
