"""What a replay computes depends on more than the recorded ranges: on settings, and on which rows the code reads."""

import json
import os
import shutil
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.restart.scenario import CONF, STREAM
from tests.restart.small import PIPELINE, Minutes, SmallWorkspace, expected

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]
START = datetime(2024, 1, 1, tzinfo=UTC)
FILTER = ".filter(\"page = 'a'\")"
BY_HOUR = PIPELINE.replace('"page").agg', '"page", F.hour("ts").alias("hour")).agg')
TOKYO = ("--conf", "spark.sql.session.timeZone=Asia/Tokyo")


def _write(workspace: SmallWorkspace, pipeline: str, condition: str, *, imported: bool) -> None:
    """The pipeline, with its function ``kept`` in the file itself or in a module next to it."""
    function = IN_FILE.format(filter=condition)
    workspace.write(pipeline.replace("pipeline =", (IMPORTED if imported else function) + "pipeline =", 1))
    if imported:
        (workspace.folder / "where.py").write_text(function)


def _add_parquet(workspace: SmallWorkspace, number: int, minutes: Minutes, page: str) -> None:
    rows = [{"ts": START + timedelta(minutes=minute), "page": page, "n": 1} for minute in minutes]
    hidden = workspace.folder / "landing" / f".{number}"
    pyarrow.parquet.write_table(pa.Table.from_pylist(rows), hidden)
    os.utime(hidden, (1_700_000_000 + number, 1_700_000_000 + number))
    hidden.rename(workspace.folder / "landing" / f"{number}.parquet")


def _sums(workspace: SmallWorkspace) -> Counter[int]:
    """Sums by window start in minutes of the day, over all pages."""
    rows = pyarrow.parquet.read_table(workspace.output).to_pylist()
    sums: Counter[int] = Counter()
    for row in rows:
        start = row["window"]["start"]
        sums[start.hour * 60 + start.minute] += row["n"]
    return sums


BELOW = PIPELINE.replace("marked = rows.", "marked = kept(rows).")
ABOVE = PIPELINE.replace('minutes")\n    return marked', 'minutes")\n    return kept(marked)')
BEHIND = PIPELINE.replace("return marked", "return kept(marked").replace('alias("n"))', 'alias("n")))')
IN_FILE = "def kept(rows):\n    return rows{filter}\n\n"
IMPORTED = "from where import kept\n\n"


@pytest.mark.parametrize(
    ("place", "imported"),
    [
        # Spark applies all of them before the watermark.
        pytest.param(ABOVE, True, id="above-in-a-module"),
        pytest.param(BELOW, False, id="below", marks=pytest.mark.thorough),
        pytest.param(ABOVE, False, id="above", marks=pytest.mark.thorough),
        pytest.param(BEHIND, False, id="behind-the-aggregation", marks=pytest.mark.thorough),
        pytest.param(BEHIND, True, id="behind-in-a-module", marks=pytest.mark.thorough),
    ],
)
def test_a_wider_filter_reads_what_the_old_code_left_out(place: str, imported: bool, tmp_path: Path) -> None:
    workspace = SmallWorkspace(tmp_path / "wider")
    _write(workspace, place, FILTER, imported=imported)
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

    _write(workspace, place, "", imported=imported)
    plan = workspace.rebuild(*CONF)
    workspace.add("last", [400])
    workspace.caught_up()

    late = [minute for minute in early if minute >= closed + 30]
    assert _sums(workspace) == expected(rows, 0, 90) + expected([*rows, *late], 90, 400)
    assert plan["facts"]["contributing"] <= 6
    assert any("other code" in note for note in plan["facts"]["notes"])


@pytest.mark.thorough
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


PARQUET = PIPELINE.replace(".json(", ".parquet(")
CONDITION = ".where(\"page >= 'b'\")"
FROM_SETTING = PIPELINE.replace(
    "marked = rows.", 'marked = rows.filter(F.col("n") >= int(spark.conf.get("spark.app.min"))).'
)
LEAST = ("--conf", "spark.app.min=2")


def test_rows_that_another_program_counted_are_no_evidence_of_lost_input(tmp_path: Path) -> None:
    """Spark pushes the filter into the reads of Parquet files, whose groups of rows it then leaves out."""
    workspace = SmallWorkspace(tmp_path / "pushed", PARQUET)
    rows = range(120)
    for number in range(4):
        _add_parquet(workspace, number, rows[number * 30 : number * 30 + 30], page="ab"[number % 2])
    workspace.caught_up()

    workspace.write(PARQUET.replace('minutes")\n    return marked', f'minutes")\n    return marked{CONDITION}'))
    workspace.rebuild(*CONF)
    _add_parquet(workspace, 4, [400], page="b")
    workspace.caught_up()

    assert _sums(workspace) == expected(rows, 0, 90) + expected(range(90, 120), 90, 400)


@pytest.mark.thorough
def test_a_replay_runs_under_the_settings_that_the_code_reads(tmp_path: Path) -> None:
    workspace, unbroken = (SmallWorkspace(tmp_path / name, FROM_SETTING) for name in ("rebuilt", "unbroken"))
    for one in (workspace, unbroken):
        one.add("few", range(100), n=1)
        one.add("many", range(100), n=3)
        one.caught_up(*LEAST)
        one.add("last", [400], n=3)
    unbroken.caught_up(*LEAST)

    shutil.rmtree(workspace.checkpoint)
    shown = workspace.slackwater("plan", "rebuild", STREAM, "--out", "plan.json").stdout
    assert "spark.app.min=2" in shown
    workspace.slackwater("apply", "plan.json", "--yes", *CONF)
    workspace.caught_up(*LEAST)
    assert workspace.rows() == unbroken.rows()
