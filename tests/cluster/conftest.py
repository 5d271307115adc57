"""A project for each test; one cluster for all tests of this folder."""

from collections.abc import Iterator

import pytest

from tests.runtime.conftest import project
from tests.support.standalone_cluster import StandaloneCluster, standalone_cluster

__all__ = ["project"]


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running
