"""What a replay computes depends on more than the recorded ranges: on settings, and on which rows the code reads."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pyarrow.parquet
import pytest

from tests.restart.scenario import CONF, STREAM
from tests.restart.small import PIPELINE, SmallWorkspace, expected

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]
FILTER = ".filter(\"page = 'a'\")"
NARROW = PIPELINE.replace("marked = rows.", f"marked = rows{FILTER}.")
BY_HOUR = PIPELINE.replace('"page").agg', '"page", F.hour("ts").alias("hour")).agg')
TOKYO = ("--conf", "spark.sql.session.timeZone=Asia/Tokyo")


def _sums(workspace: SmallWorkspace) -> Counter[int]:
    """Sums by window start in minutes of the day, over all pages."""
    rows = pyarrow.parquet.read_table(workspace.output).to_pylist()
    sums: Counter[int] = Counter()
    for row in rows:
        start = row["window"]["start"]
        sums[start.hour * 60 + start.minute] += row["n"]
    return sums


def test_a_wider_filter_reads_what_the_old_code_left_out(tmp_path: Path) -> None:
    workspace = SmallWorkspace(tmp_path / "wider", NARROW)
    rows: list[int] = []
    for number in range(6):
        minutes = range(number * 10, number * 10 + 10)
        workspace.add(f"a-{number}", minutes)
        rows += minutes
    # The old code never saw these, so that its event times say nothing of the batch that read them.
    early = [*[95] * 28, 70]
    workspace.add("b", early, page="b")
    for number in range(6, 11):
        minutes = range(number * 10, number * 10 + 10)
        workspace.add(f"a-{number}", minutes)
        rows += minutes
    workspace.caught_up()
    closed = max(_sums(workspace))
    assert closed == 60, "the windows from 90 on are open"

    workspace.write(PIPELINE)
    plan = workspace.rebuild(*CONF)
    workspace.add("last", [400])
    workspace.caught_up()

    late = [minute for minute in early if minute >= closed + 30]
    assert _sums(workspace) == expected(rows, 0, 90) + expected([*rows, *late], 90, 400)
    assert plan["facts"]["contributing"] <= 6
    assert any("other code" in note for note in plan["facts"]["notes"])


def test_a_replay_runs_under_the_time_zone_of_the_runs(tmp_path: Path) -> None:
    workspace, unbroken = (SmallWorkspace(tmp_path / name, BY_HOUR) for name in ("rebuilt", "unbroken"))
    for one in (workspace, unbroken):
        one.add("first", range(100))
        one.caught_up(*TOKYO)
        one.add("second", range(100, 300))
    unbroken.caught_up(*TOKYO)

    shutil.rmtree(workspace.checkpoint)
    shown = workspace.slackwater("plan", "rebuild", STREAM, "--out", "plan.json").stdout
    assert "spark.sql.session.timeZone=Asia/Tokyo" in shown
    workspace.slackwater("apply", "plan.json", "--yes", *CONF)
    workspace.caught_up(*TOKYO)

    plan = json.loads((workspace.folder / "plan.json").read_text())
    assert plan["facts"]["contributing"] <= plan["facts"]["target"]
    assert workspace.rows() == unbroken.rows()
