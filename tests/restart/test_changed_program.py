"""State means what the code meant that made it: changed code is compared with that before anything is started."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from tests.restart.scenario import CONF, STREAM
from tests.restart.small import (
    BODY,
    CAUGHT_UP,
    PIPELINE,
    SOURCE,
    Saved,
    SmallWorkspace,
    error_code,
    expected,
    follow,
    tree,
)
from tests.support.killing import kill_when

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]
SPAN = range(80)
UPPER = PIPELINE.replace('"page").agg', 'F.upper("page").alias("page")).agg')
FILTERED = PIPELINE.replace("marked = rows.", 'marked = rows.filter("n < 100").')
CHECK = ("check", "clicks.py", *CONF)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[SmallWorkspace, Saved]:
    """A workspace that has run over 80 minutes of rows: the window from 60 on is open."""
    workspace = SmallWorkspace(tmp_path_factory.mktemp("ran"))
    for number in range(4):
        workspace.add(f"a-{number}", range(number * 20, number * 20 + 20))
    workspace.caught_up()
    return workspace, Saved(workspace, tmp_path_factory.mktemp("saved") / "folder")


@pytest.fixture
def workspace(ran: tuple[SmallWorkspace, Saved]) -> Iterator[SmallWorkspace]:
    """The workspace as it was after its first run."""
    yield ran[0]
    ran[1].restore()


def _checked(workspace: SmallWorkspace, code: int = 0) -> dict[str, Any]:
    document = json.loads(workspace.slackwater(*CHECK, "--format", "json", code=code).stdout)
    stream: dict[str, Any] = document["streams"][0]
    return stream


def _codes(workspace: SmallWorkspace) -> set[str]:
    return {change["code"] for change in _checked(workspace, code=1)["changes"]}


def _sums(workspace: SmallWorkspace) -> Counter[tuple[int, str]]:
    rows = pyarrow.parquet.read_table(workspace.output).to_pylist()
    sums: Counter[tuple[int, str]] = Counter()
    for row in rows:
        sums[row["window"]["start"].hour * 60 + row["window"]["start"].minute, row["page"]] += row["n"]
    return sums


def _named(sums: Counter[int], page: str) -> Counter[tuple[int, str]]:
    return Counter({(start, page): total for start, total in sums.items()})


def test_a_key_with_another_expression_is_refused_and_rebuilt(workspace: SmallWorkspace) -> None:
    workspace.write(UPPER)
    before = tree(workspace.folder)

    refused = workspace.slackwater(*CAUGHT_UP, code=5)

    assert error_code(refused) == "program-changed"
    assert "keys-changed, needs-rebuild" in refused.stderr
    assert tree(workspace.folder) == before
    shown = workspace.status(code=7)
    assert shown["verdict"]["code"] == "start-refused"
    assert f"slackwater plan rebuild web/{STREAM} --pipeline" in shown["advice"]
    page = workspace.slackwater(*CHECK, code=1).stdout
    assert page.count("keys-changed") == 2, "the change, and how to accept it"
    assert "with the program that made the state up to batch" in page
    assert tree(workspace.folder) == before

    workspace.add("last", range(80, 200))
    follow(workspace, refused.stderr, lambda: max(_sums(workspace))[0] > 60)
    assert _sums(workspace) == _named(expected(SPAN, 0, 60), "a") + _named(expected(range(200), 60, 180), "A")
    assert workspace.status()["verdict"]["code"] == "clean"

    # The code that replayed has made the state; after an undo the old code has again.
    assert _checked(workspace)["effect"] == "same"
    workspace.write(PIPELINE)
    assert _codes(workspace) == {"keys-changed"}


def test_undo_brings_the_program_of_the_old_state_back(workspace: SmallWorkspace) -> None:
    workspace.write(UPPER)
    plan = workspace.rebuild(*CONF)
    assert _checked(workspace)["effect"] == "same"

    workspace.slackwater("undo", plan["id"], "--yes")

    assert _codes(workspace) == {"keys-changed"}
    (workspace.folder / ".slackwater" / "ledger.db").unlink()
    assert _codes(workspace) == {"keys-changed"}, "a lost ledger keeps it"
    workspace.write(PIPELINE)
    assert _checked(workspace)["effect"] == "same"
    workspace.caught_up()


def test_an_accepted_change_is_part_of_the_state_once_a_batch_is_committed(workspace: SmallWorkspace) -> None:
    workspace.write(FILTERED)
    assert "changes-rows" in workspace.slackwater(*CAUGHT_UP, code=5).stderr
    (code,) = _codes(workspace)

    newest = max(workspace.ids("commits"))
    workspace.add("last", range(80, 200))
    process = workspace.start("run", "clicks.py", *CONF, "--accept", code)
    planned = workspace.checkpoint / "offsets" / str(newest + 1)
    kill_when(process, planned.exists, (workspace.checkpoint / "offsets").exists)
    assert max(workspace.ids("commits")) == newest, "killed before its first commit"
    assert code in workspace.slackwater(*CAUGHT_UP, code=5).stderr

    workspace.caught_up("--accept", code)
    workspace.caught_up()

    assert _sums(workspace) == _named(expected(range(200), 0, 180), "a")
    assert error_code(workspace.slackwater(*CAUGHT_UP, "--accept", code, code=2)) == "accept-unknown"


def test_a_refused_stream_stops_no_other(workspace: SmallWorkspace) -> None:
    second = BODY.replace("def per_page", "def per_user").replace('"out"', '"out2"')
    workspace.write(UPPER + second)

    done = workspace.slackwater(*CAUGHT_UP, code=7)

    assert "web/per_page does not start" in done.stderr
    assert "--accept keys-changed" in done.stderr
    assert "web/per_user: finished" in done.stderr
    rows = pyarrow.parquet.read_table(workspace.folder / "out2").num_rows
    assert rows == len(_sums(workspace))


HARMLESS = '''
import logging

from pyspark.sql import functions as F
import slackwater as sw

WINDOW = "30 minutes"
log = logging.getLogger(__name__)
pipeline = sw.Pipeline("web")


def totals(marked):
    """Sums by page."""
    return marked.groupBy(F.window(F.col("ts"), WINDOW), F.col("page")).agg(F.sum(F.col("n")).alias("n"))


def source(spark):
    log.info("reading")
    return spark.readStream.schema("ts timestamp, page string, n long").option("maxFilesPerTrigger", 3).json("landing")


@pipeline.stream(sink=sw.sinks.files("parquet", "out"))
def per_page(spark):
    clicks = source(spark).withColumn("unused", F.lit(1))  # nothing reads it
    return totals(clicks.withWatermark("ts", "10 minutes"))
'''


def test_harmless_edits_start(workspace: SmallWorkspace) -> None:
    workspace.write(HARMLESS)
    assert _checked(workspace)["starts"]

    workspace.add("last", range(80, 200))
    workspace.caught_up()

    assert _sums(workspace) == _named(expected(range(200), 0, 180), "a")


SECOND = PIPELINE.replace("marked = rows.", "marked = rows.unionByName(rows).")
MOVED = PIPELINE.replace('json("landing")', 'json("elsewhere")')
RATE_COLUMNS = '"timestamp AS ts", "CAST(value AS STRING) AS page", "value AS n"'
RATE = f'spark.readStream.format("rate").load().selectExpr({RATE_COLUMNS})'
OTHER_KIND = PIPELINE.replace(SOURCE, RATE)
HOURLY = PIPELINE.replace('"30 minutes"', '"1 hour"')
TWICE = PIPELINE.replace("marked = rows.", 'marked = rows.dropDuplicates(["page", "ts"]).')


@pytest.mark.thorough
def test_a_rebuild_that_would_leave_the_output_wrong_is_refused(workspace: SmallWorkspace) -> None:
    workspace.write(HOURLY)
    before = tree(workspace.folder)
    refused = workspace.slackwater(*CAUGHT_UP, code=5)
    assert "window length was 30 minutes, is 1 hour" in refused.stderr

    done = workspace.slackwater("plan", "rebuild", STREAM, "--out", "plan.json", code=5)

    assert error_code(done) == "rebuild-insufficient"
    assert tree(workspace.folder) == before
    workspace.add("last", range(80, 200))
    follow(workspace, done.stderr, lambda: max(_sums(workspace), default=(0, ""))[0] == 120)
    hours = Counter({(hour * 60, "a"): 60 for hour in range(3)})
    assert _sums(workspace) == hours
    assert _checked(workspace)["effect"] == "same"


@pytest.mark.parametrize(
    ("pipeline", "code", "says"),
    [
        pytest.param(SECOND, "sources-changed", "2 sources", id="count"),
        pytest.param(MOVED, "sources-changed", "elsewhere", id="path", marks=pytest.mark.thorough),
        pytest.param(OTHER_KIND, "sources-changed", "rate", id="kind", marks=pytest.mark.thorough),
        pytest.param(TWICE, "operators-changed", "deduplication", id="operator", marks=pytest.mark.thorough),
    ],
)
@pytest.mark.parametrize("recorded", [True, False], ids=["recorded", "not-recorded"])
def test_what_spark_refuses_is_said_before_in_the_words_of_the_change(
    workspace: SmallWorkspace, pipeline: str, code: str, says: str, *, recorded: bool
) -> None:
    if not recorded:
        workspace.forget_programs()
    (workspace.folder / "elsewhere").mkdir()
    workspace.write(pipeline)

    refused = workspace.slackwater(*CAUGHT_UP, code=5)

    assert error_code(refused) == "program-changed"
    assert code in refused.stderr
    assert says in refused.stderr


def test_without_a_recorded_program_nothing_is_refused_for_lack_of_evidence(workspace: SmallWorkspace) -> None:
    workspace.forget_programs()
    workspace.write(UPPER)
    assert _checked(workspace, code=5)["compared_with"] == "checkpoint"

    workspace.add("last", range(80, 120))
    workspace.caught_up()

    workspace.write(PIPELINE)
    assert _codes(workspace) == {"keys-changed"}, "recorded by the run"


def test_a_pipeline_that_has_not_run_can_be_checked(tmp_path: Path) -> None:
    workspace = SmallWorkspace(tmp_path)

    found = _checked(workspace)

    assert (found["effect"], found["compared_with"], found["batch"]) == ("same", "nothing", -1)
    assert sorted(path.name for path in workspace.folder.iterdir()) == ["clicks.py", "landing"]
