"""Plans as Spark 4.1 wrote them, shortened: what no table of edits for all Sparks can have."""

from __future__ import annotations

import json
from typing import Any

from slackwater.runtime.plan_shapes import Leaf
from slackwater.runtime.program import PlanFacts, shapes_of

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
