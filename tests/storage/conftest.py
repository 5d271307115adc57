"""The stores of the contract: a factory each. A new kind of store adds a factory here and no test."""

import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from slackwater.storage.below import Below
from slackwater.storage.local import LocalStore
from slackwater.storage.open import open_write_store
from slackwater.storage.protocols import WriteStore
from slackwater.storage.remote import RemoteStore
from tests.support.hadoop import HADOOP, FailingFileSystem

KINDS = (
    "local",
    "below",
    "memory",
    "s3",
    "hadoop",
    pytest.param("hdfs", marks=pytest.mark.spark),
    # Google's libraries bring gRPC, whose threads other tests of the process would fork.
    pytest.param("gcs", marks=pytest.mark.thorough),
    # Its server is installed by npm.
    pytest.param("azure", marks=pytest.mark.thorough),
)


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> WriteStore:
    factories: dict[str, Callable[[], WriteStore]] = {
        "local": lambda: LocalStore(tmp_path / "root"),
        "below": lambda: Below(LocalStore(tmp_path / "root"), "1"),
        "memory": lambda: open_write_store(f"memory://{uuid.uuid4()}"),
        "hadoop": lambda: RemoteStore(FailingFileSystem(), f"/{uuid.uuid4()}", "hdfs://test", HADOOP),
        "hdfs": lambda: open_write_store(request.getfixturevalue("hdfs_location")),
        "azure": lambda: open_write_store(request.getfixturevalue("azure_location")),
        "gcs": lambda: open_write_store(request.getfixturevalue("gcs_location")),
        "s3": lambda: open_write_store(request.getfixturevalue("s3_location")),
    }
    return factories[request.param]()
