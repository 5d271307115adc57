"""A real S3 API on this machine, as fixtures: ``from tests.support.s3 import s3_endpoint, s3_location``."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

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


@contextmanager
def before_requests(look: Callable[[str, str], object]) -> Iterator[None]:
    """Call ``look`` with the method and the URL of each request before Slackwater's store sends it."""
    # The same arguments as the store's: fsspec then returns the same object.
    filesystem: Any = fsspec.filesystem("s3", use_listings_cache=False, max_concurrency=1)
    events = filesystem.s3.meta.events

    def called(request: Any, **_: object) -> None:
        look(str(request.method), str(request.url))

    events.register("before-send.s3", called)
    try:
        yield
    finally:
        events.unregister("before-send.s3", called)
