"""A Kafka broker for the tests of a module, and a project for a test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.demo.broker import Broker
from tests.runtime.project import Project


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker.start(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """An empty project; whatever it started has exited afterwards."""
    project = Project(tmp_path)
    yield project
    for command in project.commands:
        command.kill()
