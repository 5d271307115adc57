"""Home, checkpoint and output on stores: run, killed, rebuilt, undone and finished with Spark, rows equal.

Other goals on S3 and on HDFS: ``test_goals_on_stores.py``.
"""

import json
import shutil
from functools import partial
from pathlib import Path

import pytest

from tests.restart.scenario import CONF, STREAM, FileClicks, Workspace
from tests.restart.stored import STREAM_FOLDER, StoreWorkspace
from tests.support import shelf_kind
from tests.support.hdfs import HdfsServer
from tests.support.processes import Command

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("store", "undone"),
    [
        ("s3", False),
        pytest.param("s3", True, marks=pytest.mark.thorough),
        pytest.param("hdfs", True, marks=pytest.mark.thorough),
    ],
)
def test_a_stream_is_killed_rebuilt_undone_and_finished_on_it(
    store: str, undone: bool, tmp_path: Path, file_baseline: Workspace, request: pytest.FixtureRequest
) -> None:
    """URIs of S3 start with ``s3:``, which Spark knows as ``s3a:``."""
    location = request.getfixturevalue(f"{store}_location").replace("s3a:", "s3:")
    workspace = StoreWorkspace(tmp_path, location)
    workspace.kill_once(lambda one: one.written() >= 3)

    plan = workspace.rebuild()
    assert workspace.generation == 2
    if undone:
        document = json.loads(workspace.slackwater("status", f"web/{STREAM}", "--format", "json", java=False).stdout)
        assert document["home"].endswith(f"{location.partition(':')[2]}/home")
        workspace.slackwater("undo", plan["id"], "--yes", java=False)
        assert workspace.generation == 1
        # As after a mistake: the logs are rebuilt from the ledger.
        workspace.store.delete_tree(f"{STREAM_FOLDER}/checkpoints/0001")
        workspace.rebuild()
    workspace.run()

    assert workspace.rows() == file_baseline.rows()
    assert list(workspace.folder.glob("*hdfs*")) == []


@pytest.mark.thorough
def test_a_datanode_is_restarted_within_a_batch(
    tmp_path: Path, hdfs_location: str, hdfs_server: HdfsServer, file_baseline: Workspace
) -> None:
    """It is killed once a batch is planned, and comes back while the run tries to write."""
    workspace = StoreWorkspace(tmp_path, hdfs_location)
    for planned in (3, 8):
        command = Command(("run", "clicks.py", "--until-caught-up", *CONF), workspace.folder)
        try:
            command.wait_for(partial(_is_planned, workspace, planned), f"batch {planned}")
            hdfs_server.kill_datanode()
            hdfs_server.start_datanode()
            code = command.end()
        finally:
            command.kill()
        assert "Traceback" not in command.log, command.log
        # A write that found no DataNode fails the run; one that was tried again in time does not.
        assert code in {0, 7, 9}, command.log
    workspace.run()

    assert workspace.rows() == file_baseline.rows()


def _is_planned(workspace: StoreWorkspace, batch: int) -> bool:
    log = f"{STREAM_FOLDER}/checkpoints/0001/offsets"
    return max((int(entry.name) for entry in workspace.store.list(log) if entry.name.isdigit()), default=-1) >= batch


class ShelfWorkspace(Workspace):
    """A workspace whose home is on the shelf and whose ledger is a file next to it.

    The distribution is installed as any other: a module and an entry point of the group ``slackwater.stores``.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, FileClicks())
        shutil.copy(str(shelf_kind.__file__), folder / "shelf_kind.py")
        installed = folder / "shelf-1.dist-info"
        installed.mkdir()
        (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: shelf\nVersion: 1\n")
        (installed / "entry_points.txt").write_text("[slackwater.stores]\nshelf = shelf_kind:STORE\n")
        home = f'home = "shelf://{folder}/.slackwater"\n'
        (folder / "slackwater.toml").write_text(f'{home}ledger = "{folder}/ledger.db"\n')


@pytest.mark.thorough
def test_a_stream_on_a_store_of_another_distribution(tmp_path: Path, file_baseline: Workspace) -> None:
    workspace = ShelfWorkspace(tmp_path)
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
