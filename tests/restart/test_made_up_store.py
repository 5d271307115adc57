"""A home on a store of another distribution: run, killed, rebuilt, taken back and finished with Spark, rows equal.

The distribution is installed as any other: a module and an entry point of the group ``slackwater.stores``.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.restart.scenario import CONF, STREAM, FileClicks, Workspace
from tests.support import shelf_kind

pytestmark = [pytest.mark.spark, pytest.mark.thorough]
"""In the gate `test_s3.py` does the same on a store that Slackwater has."""


class ShelfWorkspace(Workspace):
    """A workspace whose home is on the shelf and whose ledger is a file next to it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, FileClicks())
        shutil.copy(str(shelf_kind.__file__), folder / "shelf_kind.py")
        installed = folder / "shelf-1.dist-info"
        installed.mkdir()
        (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: shelf\nVersion: 1\n")
        (installed / "entry_points.txt").write_text("[slackwater.stores]\nshelf = shelf_kind:STORE\n")
        home = f'home = "shelf://{folder}/.slackwater"\n'
        (folder / "slackwater.toml").write_text(f'{home}ledger = "{folder}/ledger.db"\n')


@pytest.fixture
def workspace(tmp_path: Path) -> ShelfWorkspace:
    """A workspace that has not run yet."""
    return ShelfWorkspace(tmp_path)


def test_a_stream_is_killed_rebuilt_undone_and_finished_on_it(
    workspace: ShelfWorkspace, file_baseline: Workspace
) -> None:
    workspace.kill_once(lambda one: one.written() >= 3)

    plan = workspace.rebuild()
    assert workspace.checkpoint.name == "0002"
    document = json.loads(workspace.slackwater("status", f"web/{STREAM}", "--format", "json").stdout)
    assert document["home"] == f"shelf://{workspace.folder}/.slackwater"

    workspace.slackwater("undo", plan["id"], "--yes")
    assert workspace.checkpoint.name == "0001"
    workspace.rebuild()
    workspace.slackwater("run", "clicks.py", "--until-caught-up", *CONF)

    assert workspace.rows() == file_baseline.rows()
    assert list(workspace.folder.glob("shelf:*")) == []
