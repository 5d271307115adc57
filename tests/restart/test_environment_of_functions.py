"""State that Python functions made with other variables, or in another time zone, is not continued without a word."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow.parquet
import pytest

from tests.restart.scenario import CONF
from tests.restart.small import PIPELINE, SmallWorkspace, error_code

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
FUNCTION = """import os


def scaled(ts, n):
    return (n + ts.hour) * int(os.environ["RATE"])


"""
READS_RATE = FUNCTION + PIPELINE.replace(
    'rows.withWatermark("ts"', 'rows.withColumn("n", F.udf(scaled, "bigint")("ts", "n")).withWatermark("ts"'
)
OLD = ("--conf", "spark.executorEnv.RATE=2", "--conf", "spark.executorEnv.TZ=UTC")
NEW_RATE = ("--conf", "spark.executorEnv.RATE=3", "--conf", "spark.executorEnv.TZ=Etc/UTC")
NEW_ZONE = ("--conf", "spark.executorEnv.RATE=2", "--conf", "spark.executorEnv.TZ=Asia/Tokyo")


def _sums(workspace: SmallWorkspace) -> Counter[int]:
    rows = pyarrow.parquet.read_table(workspace.output).to_pylist()
    return Counter({row["window"]["start"].minute: row["n"] for row in rows})


def test_a_start_with_another_environment_is_refused(tmp_path: Path) -> None:
    workspace = SmallWorkspace(tmp_path / "environment", READS_RATE)
    workspace.add("first", range(20))
    workspace.caught_up(*OLD)
    workspace.add("second", [*range(20, 30), 100])

    rate = workspace.caught_up(*NEW_RATE, code=5)
    zone = workspace.slackwater("check", "clicks.py", *CONF, *NEW_ZONE, code=1).stdout

    assert error_code(rate) == "program-changed"
    assert "environment variable RATE of Python functions has another value" in rate.stderr
    assert "time zone" not in rate.stderr, "it has another name only"
    assert "ran in the time zone UTC, run in Asia/Tokyo" in zone
    assert "--accept environment-changed" in zone
    workspace.caught_up(*OLD)
    assert _sums(workspace) == Counter({0: 60})
