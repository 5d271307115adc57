"""A Kafka broker for the tests of a module, and a project for a test."""

from collections.abc import Iterator

import pytest

from examples.demo.broker import Broker
from tests.runtime.conftest import project

__all__ = ["project"]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker.start(tmp_path_factory.mktemp("broker")) as running:
        yield running
