"""An S3 API on this machine that counts the requests of Slackwater's store, for the benchmarks."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import fsspec
from moto.s3.models import s3_backends
from moto.server import ThreadedMotoServer

BUCKET = "large"


class CountedS3:
    """``asked`` has the requests of this process so far: ``list``, and the others by their method."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self.asked: Counter[str] = Counter()

    def put(self, name: str, data: bytes) -> None:
        """Put an object straight into the server, which is no request."""
        self._backend.put_object(BUCKET, name, data)

    def count(self, request: Any, **_: object) -> None:
        """Called before a request is sent."""
        self.asked["list" if "list-type=2" in str(request.url) else str(request.method)] += 1


@contextmanager
def counted_s3() -> Iterator[CountedS3]:
    """A server with an empty bucket, which the environment of this process names."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    os.environ |= {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }  # fmt: skip
    # The same options as the store's, so that it is the same object, whose requests are counted.
    filesystem: Any = fsspec.filesystem("s3", use_listings_cache=False, max_concurrency=1)
    filesystem.mkdir(BUCKET)
    s3 = CountedS3(s3_backends["123456789012"]["aws"])
    filesystem.s3.meta.events.register("before-send.s3", s3.count)
    yield s3
    server.stop()
