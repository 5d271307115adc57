"""Home, checkpoint and output on HDFS: run, killed, rebuilt, taken back and finished with Spark, rows equal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.restart.scenario import STREAM, Workspace
from tests.restart.stored import STREAM_FOLDER, StoreWorkspace
from tests.support.hdfs import hdfs_location, hdfs_server

__all__ = ["hdfs_location", "hdfs_server"]

pytestmark = pytest.mark.spark


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
