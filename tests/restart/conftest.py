"""Fixtures of the restart tests: workspaces in which a pipeline runs, is killed, rebuilt and finished."""

from pathlib import Path

import pytest

from tests.restart.scenario import FileClicks, Workspace


@pytest.fixture(scope="session")
def file_baseline(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """The uninterrupted run over files that every other one is compared with."""
    workspace = Workspace(tmp_path_factory.mktemp("baseline"), FileClicks())
    workspace.run()
    return workspace


@pytest.fixture
def file_workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path, FileClicks())
