"""Home, checkpoint and output on S3, which Spark reaches by S3A: run, killed, rebuilt, undone, finished; rows equal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.restart.scenario import Workspace
from tests.restart.stored import STREAM_FOLDER, StoreWorkspace

pytestmark = pytest.mark.spark


@pytest.fixture
def workspace(tmp_path: Path, s3_location: str) -> StoreWorkspace:
    """A workspace that has not run yet; its URIs start with ``s3:``, which Spark knows as ``s3a:``."""
    return StoreWorkspace(tmp_path, s3_location.replace("s3a:", "s3:"))


@pytest.mark.parametrize("undone", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_a_stream_is_killed_rebuilt_undone_and_finished_on_it(
    workspace: StoreWorkspace, file_baseline: Workspace, undone: bool
) -> None:
    workspace.kill_once(lambda one: one.written() >= 3)

    plan = workspace.rebuild()
    assert workspace.generation == 2

    if undone:
        workspace.slackwater("undo", plan["id"], "--yes", java=False)
        assert workspace.generation == 1
        workspace.store.delete_tree(f"{STREAM_FOLDER}/checkpoints/0001")
        workspace.rebuild()
    workspace.run()

    assert workspace.rows() == file_baseline.rows()
