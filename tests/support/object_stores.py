"""The object stores that run on this machine, as one fixture: ``object_location`` is an empty place on each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urlencode

import aiohttp
import pytest

from tests.support import s3
from tests.support.azure import azure_endpoint, azure_location
from tests.support.gcs import gcs_endpoint, gcs_location
from tests.support.s3 import s3_endpoint, s3_location

__all__ = [
    "azure_endpoint",
    "azure_location",
    "gcs_endpoint",
    "gcs_location",
    "s3_endpoint",
    "s3_location",
]


_MORE = [pytest.mark.thorough, pytest.mark.timeout(1200)]


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
