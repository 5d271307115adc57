"""A rebuild reads the files that were read: one that was replaced meanwhile is refused by its name."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.restart.scenario import CONF, STREAM
from tests.restart.small import Saved, SmallWorkspace, error_code, tree
from tests.support.outputs import Rows

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]
PLAN = ("plan", "rebuild", STREAM, "--out", "plan.json")


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory) -> tuple[SmallWorkspace, Saved, Rows]:
    """A workspace that has lost its checkpoint, and the rows that an uninterrupted run has after one more file."""
    folder = tmp_path_factory.mktemp("replaced")
    workspace = SmallWorkspace(folder / "workspace")
    for number in range(4):
        workspace.add(f"f{number}", range(number * 20, number * 20 + 20))
    workspace.caught_up()
    kept = Saved(workspace, folder / "before")
    workspace.add("last", [400])
    workspace.caught_up()
    unbroken = workspace.rows()
    kept.restore()
    shutil.rmtree(workspace.checkpoint)
    return workspace, Saved(workspace, folder / "lost"), unbroken


def _replace(file: Path, *, same_time: bool) -> None:
    before = file.stat()
    rows = file.read_text().replace('"n": 1', '"n": 7' if not same_time else '"n": 77')
    file.write_text(rows)
    if same_time:
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def _rebuilt(workspace: SmallWorkspace) -> Rows:
    workspace.slackwater("apply", "plan.json", "--yes", *CONF)
    workspace.add("last", [400])
    workspace.caught_up()
    return workspace.rows()


@pytest.mark.parametrize(
    "same_time", [False, pytest.param(True, marks=pytest.mark.thorough)], ids=["other-time", "same-time"]
)
def test_a_file_that_was_replaced_is_refused(
    lost: tuple[SmallWorkspace, Saved, Rows], same_time: bool, tmp_path: Path
) -> None:
    workspace, saved, unbroken = lost
    saved.restore()
    file = workspace.folder / "landing" / "f3.json"
    shutil.copy2(file, tmp_path / "f3.json")
    _replace(file, same_time=same_time)
    before = tree(workspace.folder)

    refused = workspace.slackwater(*PLAN, code=5)

    assert error_code(refused) == "source-files-replaced"
    assert "f3.json" in refused.stderr
    assert tree(workspace.folder) == before
    shutil.copy2(tmp_path / "f3.json", file)
    workspace.slackwater(*PLAN)
    assert _rebuilt(workspace) == unbroken


def test_a_file_that_is_replaced_between_plan_and_apply_is_refused(lost: tuple[SmallWorkspace, Saved, Rows]) -> None:
    workspace, saved, _ = lost
    saved.restore()
    workspace.slackwater(*PLAN)
    _replace(workspace.folder / "landing" / "f3.json", same_time=False)
    before = tree(workspace.folder)

    refused = workspace.slackwater("apply", "plan.json", "--yes", *CONF, code=5)

    assert error_code(refused) == "source-files-replaced"
    assert tree(workspace.folder) == before


@pytest.mark.thorough
def test_a_file_that_was_only_touched_is_taken_at_the_users_word(lost: tuple[SmallWorkspace, Saved, Rows]) -> None:
    workspace, saved, unbroken = lost
    saved.restore()
    for file in (workspace.folder / "landing").iterdir():
        file.chmod(0o600)
        os.link(file, workspace.folder / f"link-{file.name}")
    (workspace.folder / "landing" / "f3.json").touch()

    refused = workspace.slackwater(*PLAN, code=5)

    assert error_code(refused) == "source-files-replaced"
    typed = refused.stderr.rpartition("set the time back: ")[2]
    subprocess.run(shlex.split(typed), check=True)
    workspace.slackwater(*PLAN)
    assert _rebuilt(workspace) == unbroken
