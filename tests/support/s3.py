"""A real S3 API on this machine: the fixtures ``s3_endpoint`` and ``s3_location``."""

import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import fsspec
import pytest

from slackwater.storage.s3_filesystem import S3FileSystem

_SERVER = """
import threading
from moto.server import ThreadedMotoServer

server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
threading.Event().wait()
"""


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """A real S3 API on this machine, with a bucket for the tests.

    In a process of its own: deltalake keeps the interpreter's lock while it waits for some of its answers.
    """
    command = [sys.executable, "-c", _SERVER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        yield f"http://127.0.0.1:{port}"
        server.kill()


@pytest.fixture
def s3_location(s3_endpoint: str) -> Iterator[str]:
    """An empty place in the bucket, reached through the environment as a user would."""
    # fsspec keeps a file system by its arguments, with the settings of the environment that it was made under.
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_ENDPOINT_URL", s3_endpoint)
        environment.setenv("AWS_ACCESS_KEY_ID", "test")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "test")
        environment.setenv("AWS_DEFAULT_REGION", "us-east-1")
        forget_clients()
        filesystem = fsspec.filesystem("s3", skip_instance_cache=True)
        if not filesystem.exists("slackwater"):
            filesystem.mkdir("slackwater")
        yield f"s3a://slackwater/{uuid.uuid4()}"
    forget_clients()


def forget_clients() -> None:
    """Have the next store look into the environment again."""
    S3FileSystem.clear_instance_cache()


@contextmanager
def before_requests(look: Callable[[str, str], object]) -> Iterator[None]:
    """Call ``look`` with the method and the URL of each request before Slackwater's store sends it."""
    # The same arguments as the store's: fsspec then returns the same object.
    filesystem: Any = S3FileSystem(use_listings_cache=False, max_concurrency=1)
    events = filesystem.s3.meta.events

    def called(request: Any, **_: object) -> None:
        look(str(request.method), str(request.url))

    events.register("before-send.s3", called)
    try:
        yield
    finally:
        events.unregister("before-send.s3", called)
