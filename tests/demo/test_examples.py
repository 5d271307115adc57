"""The examples are found, and the demo's changes of them do what they describe."""

import ast

import pytest

from examples.demo.story import RAW_FROM_KAFKA, UPGRADE, UPGRADED_STREAM
from slackwater.cli.verbs.init import read_example, with_change, with_stream_of_change


def functions(text: str) -> dict[str, str]:
    return {node.name: ast.unparse(node) for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize(("change", "function"), [(UPGRADE, "daily"), (RAW_FROM_KAFKA, "raw")])
def test_a_change_replaces_one_function_and_nothing_else(change: str, function: str) -> None:
    before, after = (
        functions(read_example("weather.py")),
        functions(with_change(read_example("weather.py"), read_example(change))),
    )
    assert {name for name in before if before[name] != after[name]} == {function}
    assert before.keys() == after.keys()


def test_a_changed_stream_keeps_its_decorator_and_gets_its_imports() -> None:
    text = with_change(read_example("weather.py"), read_example(RAW_FROM_KAFKA))
    assert "import os\n" in text
    assert "@pipeline.stream(name='sensor-raw-ingest'" in functions(text)["raw"]
    assert '.format("kafka")' in text


def test_the_pipeline_of_tables_reads_kafka_by_the_same_change() -> None:
    tables = read_example("weather_tables.py")
    before, after = functions(tables), functions(with_change(tables, read_example(RAW_FROM_KAFKA)))
    assert {name for name in before if before[name] != after[name]} == {"raw"}
    assert "sinks.delta('out/raw')" in after["raw"]


def test_old_and_new_code_stand_side_by_side() -> None:
    before = functions(read_example("weather.py"))
    upgrade = read_example(UPGRADE)
    after = functions(
        with_stream_of_change(read_example("weather.py"), upgrade, renamed="upgraded_daily", stream=UPGRADED_STREAM)
    )
    assert set(after) - set(before) == {"upgraded_daily", "upgraded_gold"}
    assert after["daily"] == before["daily"]
    assert after["upgraded_daily"] == functions(upgrade)["daily"].replace("def daily(", "def upgraded_daily(")
