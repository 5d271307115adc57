"""State that Python functions made with another value, variable or time zone is not continued without a word."""

import shutil
from collections import Counter
from pathlib import Path

import pyarrow.parquet
import pytest

from tests.restart.scenario import CONF
from tests.restart.small import PIPELINE, SmallWorkspace, error_code, expected, printed_commands

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
FUNCTION = """import os


def scaled(ts, n):
    return (n + ts.hour) * int(os.environ["RATE"])


"""
READS_RATE = FUNCTION + PIPELINE.replace(
    'rows.withWatermark("ts"', 'rows.withColumn("n", F.udf(scaled, "bigint")("ts", "n")).withWatermark("ts"'
)
AT_ONCE = READS_RATE.replace('F.udf(scaled, "bigint")(', "SCALED(").replace(
    "pipeline = sw.", "from pyspark.sql.types import LongType\n\nSCALED = F.udf(scaled, LongType())\npipeline = sw."
)
OLD = ("--conf", "spark.executorEnv.RATE=2", "--conf", "spark.executorEnv.TZ=UTC")
NEW_RATE = ("--conf", "spark.executorEnv.RATE=3", "--conf", "spark.executorEnv.TZ=Etc/UTC")
NEW_ZONE = ("--conf", "spark.executorEnv.RATE=2", "--conf", "spark.executorEnv.TZ=Asia/Tokyo")


def test_a_start_with_another_environment_is_refused(tmp_path: Path) -> None:
    workspace = SmallWorkspace(tmp_path / "environment", READS_RATE)
    workspace.add("first", range(20))
    workspace.caught_up(*OLD)
    workspace.add("second", [*range(20, 30), 100])

    rate = workspace.caught_up(*NEW_RATE, code=5)
    zone = workspace.slackwater("check", "clicks.py", *CONF, *NEW_ZONE, code=1).stdout

    assert error_code(rate) == "program-changed"
    assert "environment variable RATE of Python functions has a new value" in rate.stderr
    assert "time zone" not in rate.stderr, "it has another name only"
    assert "ran in the time zone UTC, run in Asia/Tokyo" in zone
    assert "--accept environment-changed" in zone
    workspace.caught_up(*OLD)
    rows = pyarrow.parquet.read_table(workspace.output).to_pylist()
    assert Counter({row["window"]["start"].minute: row["n"] for row in rows}) == Counter({0: 60})


def test_a_rebuild_computes_with_the_old_environment(tmp_path: Path) -> None:
    """Also where PySpark has made the function once, for the process, in the present environment."""
    workspace = SmallWorkspace(tmp_path / "rebuilt", AT_ONCE)
    old = ("--conf", "spark.executorEnv.RATE=2", "--conf", "spark.executorEnv.TZ=Asia/Tokyo")
    workspace.add("first", range(20))
    workspace.add("second", [*range(20, 70), 5])
    workspace.kill_idle(1, *old)
    shutil.rmtree(workspace.checkpoint / "state")

    plan = ("plan", "rebuild", "web/per_page", "--pipeline", "clicks.py", "--out", "plan.json")
    planned = workspace.slackwater(*plan, *CONF, *NEW_RATE)
    shown = planned.stdout + planned.stderr
    workspace.slackwater("apply", "plan.json", "--yes", *CONF, *NEW_RATE)
    workspace.add("third", range(70, 132))
    refused = workspace.caught_up(*NEW_RATE, code=5)

    assert "with the environment that it is started in" not in shown
    assert error_code(refused) == "program-changed"
    assert "start it with the settings that made its state" in refused.stderr
    (again, *_) = printed_commands(refused.stderr)
    workspace.slackwater(*again, "--until-caught-up", *CONF)
    minutes = [*range(132), 5]
    sums = expected(minutes, 0, 120)
    # Nine hours later in Tokyo.
    rows = pyarrow.parquet.read_table(workspace.output).to_pylist()
    assert Counter(
        {row["window"]["start"].hour * 60 + row["window"]["start"].minute: row["n"] for row in rows}
    ) == Counter({start: 2 * sum(1 + (m // 60 + 9) for m in minutes if m // 30 * 30 == start) for start in sums})


NOTE = "function-not-repeatable: function scaled depends on the clock"
CLOSURE = """
import time


def scale(rate):
    def scaled(n):
        return n * rate if time.time() else 0
    return F.udf(scaled, "bigint")


"""
CLOSES_OVER_RATE = (
    PIPELINE.replace("@pipeline.stream", CLOSURE + "@pipeline.stream")
    .replace("    rows = ", '    rate = int(open("rate").read())\n    rows = ')
    .replace('rows.withWatermark("ts"', 'rows.withColumn("n", scale(rate)("n")).withWatermark("ts"')
)


def test_a_start_with_another_value_is_refused(tmp_path: Path) -> None:
    workspace = SmallWorkspace(tmp_path / "values", CLOSES_OVER_RATE)
    rate = workspace.folder / "rate"
    rate.write_text("2")
    workspace.add("first", range(20))
    first = workspace.caught_up()
    workspace.add("second", [*range(20, 30), 100])

    rate.write_text("3")
    checked = workspace.slackwater("check", "clicks.py", *CONF, code=1).stdout
    refused = workspace.caught_up(code=5)
    workspace.write(CLOSES_OVER_RATE.replace("rate)", "by)").replace("* rate", "* by").replace("by)(", "rate)("))
    rate.write_text("2")

    assert "function scaled has changed: it has a different value of rate" in checked
    assert "--accept function-changed" in checked
    assert error_code(refused) == "program-changed"
    again = workspace.caught_up()
    assert [done.stderr.count(NOTE) for done in (first, refused, again)] == [1, 0, 0]
