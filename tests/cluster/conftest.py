"""A project for each test; one cluster and one PostgreSQL server for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runtime.project import Project
from tests.support.postgres_server import PostgresServer, postgres_server
from tests.support.standalone_cluster import StandaloneCluster, standalone_cluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """An empty project; whatever it started has exited afterwards."""
    project = Project(tmp_path)
    yield project
    for command in project.commands:
        command.kill()
