"""State that a Python function made with another value is not continued without a word."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.restart.scenario import CONF
from tests.restart.small import PIPELINE, SmallWorkspace, error_code

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
NOTE = "function-not-repeatable: function scaled depends on the clock"
FUNCTION = """
import time


def scale(rate):
    def scaled(n):
        return n * rate if time.time() else 0
    return F.udf(scaled, "bigint")


"""
READS_RATE = (
    PIPELINE.replace("@pipeline.stream", FUNCTION + "@pipeline.stream")
    .replace("    rows = ", '    rate = int(open("rate").read())\n    rows = ')
    .replace('rows.withWatermark("ts"', 'rows.withColumn("n", scale(rate)("n")).withWatermark("ts"')
)


def test_a_start_with_another_value_is_refused(tmp_path: Path) -> None:
    workspace = SmallWorkspace(tmp_path / "values", READS_RATE)
    rate = workspace.folder / "rate"
    rate.write_text("2")
    workspace.add("first", range(20))
    first = workspace.caught_up()
    workspace.add("second", [*range(20, 30), 100])

    rate.write_text("3")
    checked = workspace.slackwater("check", "clicks.py", *CONF, code=1).stdout
    refused = workspace.caught_up(code=5)
    workspace.write(READS_RATE.replace("rate)", "by)").replace("* rate", "* by").replace("by)(", "rate)("))
    rate.write_text("2")

    assert "function scaled has changed: it has another value of rate" in checked
    assert "--accept function-changed" in checked
    assert error_code(refused) == "program-changed"
    again = workspace.caught_up()
    assert [done.stderr.count(NOTE) for done in (first, refused, again)] == [1, 0, 0]
