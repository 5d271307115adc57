"""Reads a query's program from Spark's analysed plan, mostly by one JVM call, and the user's row-writing functions.

Rows are written by a function per batch, per row, or of a data source.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import structlog
from pyspark.sql import streaming

from slackwater.core.masking import mask_setting
from slackwater.core.program import InputShape, OperatorShape, Program, SourceShape
from slackwater.formats.plan_json import PYTHON_FUNCTIONS, TreeNode, parse_plan
from slackwater.runtime.program.code_reach import CodeReach, reach_of, with_output_environment
from slackwater.runtime.program.function_values import Taken
from slackwater.runtime.program.logical_plan import (
    WATERMARK,
    Nodes,
    analysed_plan,
    class_name,
    data_source,
    delay_ms,
    elements,
    expressions_of,
    name_of,
    nodes_of,
    source_options,
    taken_by_functions,
    together,
)
from slackwater.runtime.program.pickled import NOT_READ
from slackwater.runtime.program.plan_expressions import LEFT_OUT, type_name
from slackwater.runtime.program.plan_shapes import Leaf, Shapes
from slackwater.sinks.common.registry import SINKS
from slackwater.sources.common.contract import scala_map

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from slackwater.sinks.common.contract import Sink


log = structlog.get_logger(__name__)

ZONE = "spark.sql.session.timeZone"
ANSI = "spark.sql.ansi.enabled"
LOCATIONS = ("subscribe", "subscribepattern", "assign", "path", "paths", "dbtable", "table", "topic")
"""Options with the locations that a source reads, in lower case."""
DEEP = 6_000
"""Python frames for a plan of many nodes below each other: each ``withColumn`` adds a node."""
_READ_IN_PYTHON = "PythonTable"
_MAP_FIELD = "options"
"""The field of all expressions that have a map: for JSON, CSV, XML, Avro and Protobuf."""
_BYTES_ADDRESS = "[B@"
_KEPT_CHARACTERS_MAX = 300
"""The longest text that is kept as it is."""
_LEFT_OUT = re.compile(rf'"{_MAP_FIELD}":null|"value":"{re.escape(_BYTES_ADDRESS)}')


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """A plan as JSON, and the data missing in it, by preorder place."""

    plan: str
    leaves: Mapping[int, Leaf]
    delays_ms: Mapping[int, int]
    sources: tuple[SourceShape, ...]


def program_of(frame: DataFrame, output_mode: str, reach: CodeReach | None = None) -> Program:
    """The query's program. Without ``reach`` its functions cannot be compared.

    Raises ValueError or LookupError for an unreadable plan.
    """
    facts, nodes = _read(frame)
    read_by = _data_sources(facts, nodes, frame, reach) if reach is not None else {}
    facts = replace(facts, leaves={**facts.leaves, **{place: leaf for place, (leaf, _) in read_by.items()}})
    operators, rows = shapes_of(facts, output_mode)
    digests = dict(reach.functions if reach is not None else {})
    taken = {}
    if reach is not None:
        with _room_for_deep_plans():
            taken = taken_by_functions(nodes, frame.sparkSession._jvm, reach.taken)
    code = reach.code if reach is not None else None
    operators = tuple(_with_processors(operator, digests) for operator in operators)
    if code is not None:
        # Of a name that the code does not show, such as that of a partial: whatever the stream's function reaches.
        digests = dict.fromkeys(_named(operators, rows), code) | digests
    for leaf, of_class in read_by.values():
        # The code that registers a class is none of it.
        digests |= dict.fromkeys(leaf.functions, of_class.code)
    conf = frame.sparkSession.conf
    return Program(
        spark_version=str(frame.sparkSession.version),
        output_mode=output_mode,
        sources=facts.sources,
        operators=operators,
        rows=rows,
        output_schema=tuple(f"{one['name']} {type_name(one['type'])}" for one in frame.schema.jsonValue()["fields"]),
        functions={name: digests[name] for name in sorted(_named(operators, rows) & digests.keys())},
        values={name: one.values for name, one in taken.items()}
        | {name: one.values for leaf, one in read_by.values() for name in leaf.functions},
        outside={name: tuple(sorted(one.outside)) for name, one in taken.items() if one.outside},
        settings={key: str(conf.get(key)) for key in (ZONE, ANSI)},
        code=code,
    )


def _data_sources(facts: PlanFacts, nodes: Nodes, frame: DataFrame, reach: CodeReach) -> dict[int, tuple[Leaf, Taken]]:
    found = {}
    for place, leaf in facts.leaves.items():
        tree, node = nodes[place]
        if tree.name != "StreamingRelationV2" or class_name(node.table()) != _READ_IN_PYTHON:
            continue
        name = str(node.sourceName())
        try:
            made = data_source(name, frame.sparkSession)
            if made is not None:
                found[place] = replace(leaf, functions=(name_of(made),)), reach.taken(made)
        except NOT_READ as error:
            log.debug("the class of a data source cannot be compared", source=name, error=str(error))
    return found


def give_variables(frame: DataFrame, variables: Mapping[str, str]) -> None:
    """Set variables for functions, which otherwise keep the session's variables of their first use."""
    with _room_for_deep_plans():
        calls = expressions_of(_read(frame)[1], lambda one: one.name in PYTHON_FUNCTIONS, of_subqueries=True)
        for _, expression in calls:
            given = expression.func().envVars()
            given.clear()
            for name, value in variables.items():
                given.put(name, value)


def plan_facts(frame: DataFrame) -> PlanFacts:
    return _read(frame)[0]


def _read(frame: DataFrame) -> tuple[PlanFacts, Nodes]:
    plan = analysed_plan(frame)
    text = str(plan.toJSON())
    with _room_for_deep_plans():
        nodes = tuple(zip(parse_plan(text).walk(), nodes_of(plan), strict=True))
        text = _with_left_out(text, nodes)
    leaves: dict[int, Leaf] = {}
    sources: list[SourceShape] = []
    several = sum(tree.name.startswith("StreamingRelation") for tree, _ in nodes) > 1
    for place, (tree, node) in enumerate(nodes):
        if tree.children:
            continue
        if tree.name.startswith("StreamingRelation"):
            number = len(sources)
            leaves[place] = Leaf(f"source {number}", f"source{number}." if several else "", streaming=True)
            sources.append(_source(tree, node))
            continue
        name = f"relation {tree.name}"
        if tree.name == "DataSourceV2Relation":
            name = f"table {node.name()}"
        elif tree.name == "LogicalRelation" and class_name(node.relation()) == "HadoopFsRelation":
            name = "files " + ", ".join(str(path) for path in elements(node.relation().location().rootPaths()))
        leaves[place] = Leaf(name, "static.", streaming=False)
    delays = {place: delay_ms(node) for place, (tree, node) in enumerate(nodes) if tree.name == WATERMARK}
    return PlanFacts(text, leaves, delays, tuple(sources)), nodes


def shapes_of(facts: PlanFacts, output_mode: str) -> tuple[tuple[OperatorShape, ...], tuple[InputShape, ...]]:
    with _room_for_deep_plans():
        return Shapes(facts.leaves, facts.delays_ms, limits=output_mode == "append").read(parse_plan(facts.plan))


def _with_processors(operator: OperatorShape, digests: dict[str, str]) -> OperatorShape:
    """Adds possible processor classes: the plan of transformWithState names only PySpark's own function.

    A class's ``init``, which declares state, has its own digest.
    """
    if operator.kind != "transform-with-state":
        return operator
    names = list(operator.functions)
    for processor in _subclasses(getattr(streaming, "StatefulProcessor", None)):
        if processor.__name__ in digests:
            init = f"{processor.__name__}.init"
            digests[init] = reach_of(processor.init).code
            names += [processor.__name__, init]
    return replace(operator, functions=tuple(sorted(set(names))))


def _subclasses(of: Any) -> Iterator[Any]:
    for one in of.__subclasses__() if of is not None else ():
        yield one
        yield from _subclasses(one)


@contextmanager
def _room_for_deep_plans() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, DEEP))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _named(operators: tuple[OperatorShape, ...], rows: tuple[InputShape, ...]) -> set[str]:
    return {name for one in operators for name in one.functions} | {name for one in rows for name in one.functions}


def _source(tree: TreeNode, node: Any) -> SourceShape:
    options = {key.lower(): value for key, value in source_options(node).items()}
    is_v1 = tree.name == "StreamingRelation"
    kind = str(node.dataSource().className() if is_v1 else node.sourceName())
    locations = []
    for key, value in ((key, options[key]) for key in LOCATIONS if key in options):
        if key in ("path", "paths"):
            has_scheme = re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", value)
            locations.append(value.rstrip("/") if has_scheme else os.path.normpath(Path(value).absolute()))
        elif key == "subscribe":
            locations.append("topics " + ",".join(sorted(topic.strip() for topic in value.split(","))))
        else:
            locations.append(f"{key} {value}")
    location = "; ".join(locations)
    if not location and not is_v1:
        # Of a rate source, this is all of its options, rate limits included.
        name = str(node.table().name())
        location = "" if "(" in name else name
    return SourceShape(
        kind=kind.rsplit(".", 1)[-1].lower(),
        location=location,
        schema={str(one.fields["name"]): type_name(one.fields["dataType"]) for one in tree.expressions("output")},
        options={key: mask_setting(key, value) for key, value in sorted(options.items()) if key not in LOCATIONS},
    )


def _with_left_out(plan: str, nodes: Nodes) -> str:
    """Add the data missing in the plan's JSON: options of ``from_json``, bytes of literals.

    Spark's ``TreeNode.parseToJson`` writes null for maps, and the address of a byte array. ``nodes`` are in preorder.
    Raises ValueError if JSON and JVM expressions differ.
    """
    if not _LEFT_OUT.search(plan):
        return plan
    for tree, expression in expressions_of(nodes, _lacks_data):
        fields = cast("dict[str, Any]", tree.fields)
        if tree.fields.get(_MAP_FIELD, "") is None:
            options = sorted(scala_map(expression.options()).items())
            text = ", ".join(f"{name.lower()} {mask_setting(name, value)}" for name, value in options)
            fields[LEFT_OUT] = _short_text(text)
        else:
            fields[LEFT_OUT] = _short_text(bytes(expression.value()).hex())
    return json.dumps([tree.fields for tree, _ in nodes])


def _lacks_data(tree: TreeNode) -> bool:
    bytes_lack = tree.fields.get("dataType") == "binary" and str(tree.fields.get("value")).startswith(_BYTES_ADDRESS)
    return bytes_lack or tree.fields.get(_MAP_FIELD, "") is None


def _short_text(text: str) -> str:
    return (
        text if len(text) <= _KEPT_CHARACTERS_MAX else f"{text[:60]}... sha256 {sha256(text.encode()).hexdigest()[:16]}"
    )


def with_output_functions(program: Program, sink: Sink, reach: CodeReach, spark: SparkSession) -> Program:
    found: dict[str, list[tuple[str, Taken]]] = {}
    called: list[tuple[Sink, Any]] = [
        (part, part.called if part.called is not None or part.kind in SINKS.names() else data_source(part.kind, spark))
        for part in sink.parts
    ]
    for place, (part, function) in enumerate((part, function) for part, function in called if function is not None):
        name = name_of(function)
        if name not in program.functions and program.rows:
            try:
                if isinstance(function, type):
                    taken, uses = reach.taken(function), reach.uses([function.__name__])
                else:
                    own = reach_of(getattr(function, "process", function))
                    taken, uses = replace(own.taken(function), code=own.code), own.uses(None)
                found.setdefault(name, []).append((str(place), taken))
                given = {} if part.kind == "foreach_batch" else spark.sparkContext.environment
                program = with_output_environment(program, uses, given)
            except NOT_READ as error:
                log.debug("the function of a sink cannot be compared", function=name, error=str(error))
    if not found:
        return program
    last = program.rows[0]
    return replace(
        program,
        rows=(replace(last, functions=(*last.functions, *found)), *program.rows[1:]),
        functions={**program.functions, **{name: together(each).code for name, each in found.items()}},
        values={**program.values, **{name: together(each).values for name, each in found.items()}},
    )
