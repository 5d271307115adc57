"""A project for each test; whatever it started has exited afterwards."""

import importlib.metadata
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runtime.project import Project

# Spark 3.5 has no Python data sources.
collect_ignore = (
    ["test_made_up_source.py", "test_positions.py"] if importlib.metadata.version("pyspark").startswith("3.") else []
)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    project = Project(tmp_path)
    yield project
    for command in project.commands:
        command.kill()
