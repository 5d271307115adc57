"""Plans as Spark 4.1 wrote them, shortened: what no table of edits for all Sparks can have."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from slackwater.formats.plan_json import parse_tree
from slackwater.runtime.program.plan_expressions import LEFT_OUT, LONGEST, canonical
from slackwater.runtime.program.plan_shapes import Leaf
from slackwater.runtime.program.program import PlanFacts, shapes_of

PLANS = "org.apache.spark.sql.catalyst.plans.logical."
EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."


def _column(name: str, number: int, type_: str = "string") -> list[dict[str, Any]]:
    return [
        {
            "class": EXPRESSIONS + "AttributeReference",
            "num-children": 0,
            "name": name,
            "dataType": type_,
            "exprId": {"product-class": EXPRESSIONS + "ExprId", "id": number},
        }
    ]


def test_the_keys_of_a_transform_with_state_are_the_first_columns_below_it() -> None:
    station, number = _column("station", 1), _column("n", 2, "long")
    function = {"class": EXPRESSIONS + "PythonUDF", "num-children": 2, "name": "transformWithStateUDF", "func": None}
    plan = [
        {
            "class": PLANS + "TransformWithStateInPySpark",
            "num-children": 2,
            "functionExpr": [function, *station, *number],
            "groupingAttributesLen": 1,
            "outputAttrs": [_column("total", 9, "long")],
            "timeMode": {"object": PLANS + "NoTime$"},
        },
        {"class": PLANS + "Project", "num-children": 1, "projectList": [station, number, station]},
        {
            "class": "org.apache.spark.sql.execution.streaming.runtime.StreamingRelation",
            "num-children": 0,
            "output": [number, station],
        },
        {"class": PLANS + "LocalRelation", "num-children": 0, "output": []},
    ]
    leaves = {2: Leaf("source 0", "", streaming=True), 3: Leaf("relation", "static.", streaming=False)}
    (operator,), (rows,) = shapes_of(PlanFacts(json.dumps(plan), leaves, {}, ()), "append")
    assert (operator.kind, [key.text for key in operator.keys]) == ("transform-with-state", ["station"])
    assert [column.text for column in operator.inputs[0].columns] == ["station", "n"]
    assert (operator.settings, operator.output_schema) == ({"timeMode": "NoTime"}, ("total long",))
    assert (rows.base, [column.name for column in rows.columns]) == ("operator 0", ["total"])


def _invoked(function: str) -> list[dict[str, Any]]:
    called = {"staticObject": EXPRESSIONS + "CharVarcharUtils", "functionName": function, "arguments": [0]}
    return [{"class": EXPRESSIONS + "objects.StaticInvoke", "num-children": 1, **called}, *_column("a", 1)]


def test_which_function_of_a_class_is_called_is_compared() -> None:
    padded, cut = (canonical(parse_tree(_invoked(name)), {}).text for name in ("pad", "cut"))

    assert padded.endswith(" {function pad})")
    assert padded != cut


def test_long_expressions_with_other_options_differ() -> None:
    def text(**left_out: str) -> str:
        schema = {"type": "struct", "fields": [{"name": "a" * LONGEST, "type": "long"}]}
        parsed = {"class": EXPRESSIONS + "JsonToStructs", "num-children": 1, "schema": schema, **left_out}
        return canonical(parse_tree([parsed, *_column("value", 1)]), {}).text

    first, dates, times = text(), text(**{LEFT_OUT: "dateformat yyyy"}), text(**{LEFT_OUT: "timestampformat yyyy"})
    assert len({first, dates, times}) == 3


def test_a_table_of_with_whose_columns_cannot_be_assigned_cannot_be_read() -> None:
    plan = [
        {"class": PLANS + "WithCTE", "num-children": 2},
        {"class": PLANS + "CTERelationDef", "num-children": 1, "id": 7},
        {"class": PLANS + "StreamingRelation", "num-children": 0, "output": [_column("a", 1), _column("b", 2)]},
        {"class": PLANS + "CTERelationRef", "num-children": 0, "cteId": 7, "output": [_column("a", 3)]},
    ]
    facts = PlanFacts(json.dumps(plan), {2: Leaf("source 0", "", streaming=True)}, {}, ())

    with pytest.raises(ValueError, match="has 2 columns, and a reference to it 1"):
        shapes_of(facts, "append")

    plan[3]["output"] = [_column("a", 3), _column("b", 4)]
    _, (rows,) = shapes_of(replace(facts, plan=json.dumps(plan)), "append")
    assert (rows.base, [column.text for column in rows.columns]) == ("source 0", ["a", "b"])


def test_a_negated_comparison_keeps_the_operators_in_its_strings() -> None:
    word = {"class": EXPRESSIONS + "Literal", "num-children": 0, "value": "x < y", "dataType": "string"}
    equal = [{"class": EXPRESSIONS + "EqualTo", "num-children": 2, "left": 0, "right": 1}, *_column("a", 1), word]
    negated = [{"class": EXPRESSIONS + "Not", "num-children": 1, "child": 0}, *equal]
    written = canonical(parse_tree(equal), {}).text
    assert canonical(parse_tree(negated), {}).text == written.replace(" = ", " != ")
