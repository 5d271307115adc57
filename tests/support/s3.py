"""A real S3 API on this machine, as fixtures: ``from tests.support.s3 import s3_endpoint, s3_location``."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import fsspec
import pytest
from moto.server import ThreadedMotoServer


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """A real S3 API on this machine, with a bucket for the tests."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def s3_location(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty place in the bucket, reached through the environment as a user would."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    filesystem = fsspec.filesystem("s3", skip_instance_cache=True)
    if not filesystem.exists("slackwater"):
        filesystem.mkdir("slackwater")
    return f"s3a://slackwater/{uuid.uuid4()}"
