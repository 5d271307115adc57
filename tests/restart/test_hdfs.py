"""Home, checkpoint and output on HDFS: run, killed, rebuilt, taken back and finished with Spark, rows equal."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from tests.restart.scenario import CONF, STREAM, Workspace
from tests.restart.stored import STREAM_FOLDER, StoreWorkspace
from tests.support.hdfs import HdfsServer
from tests.support.processes import Command

pytestmark = [pytest.mark.spark, pytest.mark.thorough]


@pytest.fixture
def workspace(tmp_path: Path, hdfs_location: str) -> StoreWorkspace:
    """A workspace that has not run yet."""
    return StoreWorkspace(tmp_path, hdfs_location)


def test_a_stream_is_killed_rebuilt_undone_and_finished_on_it(
    workspace: StoreWorkspace, file_baseline: Workspace
) -> None:
    workspace.kill_once(lambda one: one.written() >= 3)

    plan = workspace.rebuild()
    assert workspace.generation == 2
    document = json.loads(workspace.slackwater("status", f"web/{STREAM}", "--format", "json", java=False).stdout)
    assert document["home"] == f"{workspace.location}/home"

    workspace.slackwater("undo", plan["id"], "--yes", java=False)
    assert workspace.generation == 1
    # As after a mistake: the logs are rebuilt from the ledger.
    workspace.store.delete_tree(f"{STREAM_FOLDER}/checkpoints/0001")
    workspace.rebuild()
    workspace.run()

    assert workspace.rows() == file_baseline.rows()
    assert sorted(path.name for path in workspace.folder.iterdir() if "hdfs" in path.name) == []


def test_a_datanode_is_restarted_within_a_batch(
    workspace: StoreWorkspace, hdfs_server: HdfsServer, file_baseline: Workspace
) -> None:
    """It is killed once a batch is planned, and comes back while the run tries to write."""
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
