"""The sink holds the batch that would run next, which is not planned: refused, and led to a right result."""

import shutil
from pathlib import Path

import pytest

from tests.restart.scenario import CONF
from tests.restart.small import CAUGHT_UP, PIPELINE, SmallWorkspace, error_code, follow, tree
from tests.support.outputs import Rows

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]
FIRST, SECOND = range(100), range(100, 200)
ANOTHER = PIPELINE.replace('sw.Pipeline("web")', 'sw.Pipeline("other")')
RENAMED = PIPELINE.replace("def per_page", "def by_page")


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """The rows of both files, the second added when the first had been processed."""
    workspace = SmallWorkspace(tmp_path_factory.mktemp("unbroken"))
    workspace.add("first", FIRST)
    workspace.caught_up()
    workspace.add("second", SECOND)
    workspace.caught_up()
    return workspace.rows()


@pytest.fixture(scope="module")
def caught_up(tmp_path_factory: pytest.TempPathFactory) -> SmallWorkspace:
    """A workspace that has processed the first file; its output is at batch 1."""
    workspace = SmallWorkspace(tmp_path_factory.mktemp("ahead"))
    workspace.add("first", FIRST)
    workspace.caught_up()
    assert workspace.written() == 1
    return workspace


def _refused(workspace: SmallWorkspace, expected: str, *arguments: str) -> str:
    """What a refused run prints; the output is byte for byte as it was."""
    before = tree(workspace.output)
    done = workspace.slackwater(*(arguments or CAUGHT_UP), code=5)
    assert error_code(done) == expected
    assert tree(workspace.output) == before
    return done.stderr


def test_another_pipeline_and_a_renamed_stream_do_not_get_the_output(caught_up: SmallWorkspace) -> None:
    (caught_up.folder / "other.py").write_text(ANOTHER)
    other = _refused(caught_up, "sink-owned", "run", "other.py", "--until-caught-up", *CONF)
    assert "web/per_page" in other
    assert "output directory of its own" in other

    (caught_up.folder / "renamed.py").write_text(RENAMED)
    renamed = _refused(caught_up, "sink-owned", "run", "renamed.py", "--until-caught-up", *CONF)
    assert "web/per_page" in renamed

    # What the message says leads to a right result: an output of its own gets all rows.
    (caught_up.folder / "other.py").write_text(ANOTHER.replace('"out"', '"out-of-other"'))
    caught_up.slackwater("run", "other.py", "--until-caught-up", *CONF)
    mine, caught_up.output = caught_up.rows(), caught_up.folder / "out-of-other"
    try:
        assert caught_up.rows() == mine
    finally:
        caught_up.output = caught_up.folder / "out"


def test_a_checkpoint_restored_one_batch_older_is_rebuilt(caught_up: SmallWorkspace, unbroken: Rows) -> None:
    newest = caught_up.ids("offsets")[-1]
    for log in ("offsets", "commits"):
        (caught_up.checkpoint / log / str(newest)).unlink()
        (caught_up.checkpoint / log / f".{newest}.crc").unlink()
    assert caught_up.written() == newest == caught_up.ids("commits")[-1] + 1
    caught_up.add("second", SECOND)
    assert caught_up.status(code=5)["verdict"]["code"] == "sink-ahead"

    printed = _refused(caught_up, "sink-ahead")
    typed = follow(caught_up, printed, lambda: caught_up.rows() == unbroken)

    assert [command.split()[0] for command in typed] == ["plan", "plan", "apply", "run"]


def test_a_deleted_home_does_not_start_over_an_old_output(tmp_path: Path) -> None:
    workspace = SmallWorkspace(tmp_path / "deleted")
    workspace.add("first", FIRST)
    workspace.caught_up()
    before = workspace.rows()
    shutil.rmtree(workspace.folder / ".slackwater")
    workspace.add("second", SECOND)

    printed = _refused(workspace, "sink-owned")

    assert "move this one away" in printed
    workspace.output.rename(workspace.folder / "out-before")
    workspace.caught_up()
    assert before - workspace.rows() == {}, "the moved output's rows are all written again"
    assert workspace.rows() - before
