"""A project for each test; whatever it started has exited afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runtime.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """An empty project."""
    project = Project(tmp_path)
    yield project
    for command in project.commands:
        command.kill()
