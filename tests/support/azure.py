"""The API of Azure Blob Storage on this machine: the fixtures ``azure_endpoint`` and ``azure_location``.

The server is Azurite, Microsoft's own, locked in ``azurite/package-lock.json`` and installed by npm into the cache when
the first test asks for it. It has the interface of blobs, and not that of the Data Lake which Hadoop's ABFS needs.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest
import requests

from examples.demo.ports import free_ports
from slackwater.connectors.machine import cache_folder

CONTAINER = "slackwater"
_ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Both are written in Azurite's documentation, and the same everywhere."""
_LOCK = Path(__file__).with_name("azurite")
_START_S_MAX = 60


@pytest.fixture(scope="session")
def azure_endpoint() -> Iterator[str]:
    """The address of a server."""
    host, (port,) = "127.0.0.1", free_ports(1)
    node = shutil.which("node")
    assert node is not None, "the tests of Azure need node and npm"
    program = _installed() / "node_modules/azurite/dist/src/blob/main.js"
    options = ["--blobHost", host, "--blobPort", str(port)]
    options += ["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent"]
    command = [node, str(program), *options]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        _wait(f"http://{host}:{port}", server)
        yield f"http://{host}:{port}/{_ACCOUNT}"
        server.kill()


@pytest.fixture
def azure_location(azure_endpoint: str) -> Iterator[str]:
    """An empty place in the container, reached through the environment as a user would."""
    connection = (
        f"DefaultEndpointsProtocol=http;AccountName={_ACCOUNT};AccountKey={_KEY};BlobEndpoint={azure_endpoint};"
    )
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AZURE_STORAGE_CONNECTION_STRING", connection)
        filesystem = fsspec.filesystem("abfs", skip_instance_cache=True)
        if not filesystem.exists(CONTAINER):
            filesystem.mkdir(CONTAINER)
        yield f"abfs://{CONTAINER}/{uuid.uuid4()}"
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


def _wait(endpoint: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_S_MAX
    while time.monotonic() < deadline:
        assert server.poll() is None, f"Azurite ended with {server.returncode}"
        try:
            requests.get(endpoint, timeout=1)
        except requests.ConnectionError:
            time.sleep(0.05)
        else:
            return
    pytest.fail(f"Azurite did not start within {_START_S_MAX} s")
