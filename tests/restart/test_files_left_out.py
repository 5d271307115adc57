"""Files that are too old to be listed again, though a batch has read them: refused, then read at the user's word."""

import os

import pytest

from tests.restart.scenario import CONF, STREAM
from tests.restart.small import CAUGHT_UP, HEADER, Saved, SmallWorkspace, error_code
from tests.support.outputs import Rows

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]
DAY_S = 24 * 60 * 60
NEWEST_S = 1_700_000_000
OLD = (20, 19)
"""How many days the files of batches 1 and 2 are older than that of batch 0."""
SWAP = ("--output", "swap")


def _pipeline(option: str) -> str:
    return f"""{HEADER}
@pipeline.stream(sink=sw.sinks.files("parquet", "out"))
def per_page(spark):
    rows = spark.readStream.schema("ts timestamp, page string, n long").option("maxFilesPerTrigger", 1)
    return rows{option}.json("landing")
"""


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> tuple[SmallWorkspace, Saved, Rows]:
    """A workspace that has read old files late, and whose source now has Spark's default limit; and its rows."""
    folder = tmp_path_factory.mktemp("left-out")
    workspace = SmallWorkspace(folder / "workspace", _pipeline('.option("maxFileAge", "3650d")'))
    workspace.add("f0", [1, 2])
    workspace.caught_up()
    for number, days in enumerate(OLD, 1):
        workspace.add(f"f{number}", [number * 10])
        old_s = NEWEST_S - days * DAY_S
        os.utime(workspace.folder / "landing" / f"f{number}.json", (old_s, old_s))
        workspace.caught_up()
    rows = workspace.rows()
    assert sum(rows.values()) == 4
    workspace.write(_pipeline(""))
    return workspace, Saved(workspace, folder / "read"), rows


@pytest.fixture
def workspace(read: tuple[SmallWorkspace, Saved, Rows]) -> tuple[SmallWorkspace, Rows]:
    """The workspace as it has read all files, and its rows."""
    workspace, saved, rows = read
    saved.restore()
    return workspace, rows


@pytest.mark.parametrize(
    "goal",
    [
        ("rebuild", "--at", "earliest"),
        pytest.param(("replay", "--from", "batch:1"), marks=pytest.mark.thorough),
        pytest.param(("rebuild", "--at", "batch:0"), marks=pytest.mark.thorough),
    ],
    ids=" ".join,
)
def test_the_run_after_an_operation_refuses_to_leave_them_out(
    workspace: tuple[SmallWorkspace, Rows], goal: tuple[str, ...]
) -> None:
    work, rows = workspace
    work.slackwater("plan", goal[0], STREAM, *goal[1:], "--out", "plan.json", "--force")
    work.slackwater("apply", "plan.json", "--yes", *CONF)
    before = work.rows()

    refused = work.slackwater(*CAUGHT_UP, code=5)

    assert error_code(refused) == "source-files-too-old"
    assert work.rows() == before
    wanted = refused.stderr.partition(".option(")[2].partition(")")[0]
    work.write(_pipeline(f".option({wanted})"))
    work.caught_up()
    assert work.rows() == rows


def test_an_output_that_is_built_aside_is_not_built_without_them(workspace: tuple[SmallWorkspace, Rows]) -> None:
    work, rows = workspace
    replay = ("plan", "replay", STREAM, "--from", "batch:1", *SWAP, "--out", "plan.json", "--force")
    work.slackwater(*replay)

    refused = work.slackwater("apply", "plan.json", "--yes", *CONF, code=5)

    assert error_code(refused) == "source-files-too-old"
    assert work.rows() == rows
    work.write(_pipeline('.option("maxFileAge", "21d")'))
    work.slackwater(*replay)
    work.slackwater("apply", "plan.json", "--yes", *CONF)
    work.caught_up()
    assert work.rows() == rows


@pytest.mark.thorough
def test_what_was_moved_away_is_left_out_at_the_users_word(workspace: tuple[SmallWorkspace, Rows]) -> None:
    work, rows = workspace
    work.slackwater("plan", "replay", STREAM, "--from", "batch:1", "--out", "plan.json", "--force")
    work.slackwater("apply", "plan.json", "--yes", *CONF)
    (work.folder / "landing" / "f2.json").rename(work.folder / "f2.json")

    work.caught_up()

    assert sum(work.rows().values()) == sum(rows.values()) - 1
