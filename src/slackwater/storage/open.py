"""From what a user wrote (a path or a URI) to a store. Local ones need nothing but the standard library."""

from __future__ import annotations

import re

from slackwater.errors import UsageError
from slackwater.storage.local import LocalStore
from slackwater.storage.protocols import ReadStore, WriteStore

_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+:")


def open_read_store(location: str) -> ReadStore:
    """The store at ``location``: a plain path, a ``file:`` URI, or any URI that fsspec knows (``s3a://`` is ``s3://``).

    Raises ``UsageError`` for an unknown scheme and ``EnvironmentMissing`` where the package for it is not installed.
    """
    return open_write_store(location)


def open_write_store(location: str) -> WriteStore:
    """As ``open_read_store``, for those who may change what is there."""
    local = local_path_of(location)
    if local is not None:
        return LocalStore(local)
    from slackwater.storage.remote import open_remote_store  # noqa: PLC0415 - fsspec costs five times a local inspect

    return open_remote_store(location)


def is_uri(location: str) -> bool:
    """Whether ``location`` is written with a scheme (a single letter is none: it would be a drive)."""
    return _SCHEME.match(location) is not None


def local_path_of(location: str) -> str | None:
    """The path on this machine that ``location`` names, or ``None`` for another kind of store.

    Hadoop writes ``file:/a``, ``file:///a`` and ``file://host/a``; the paths in URIs are percent-encoded.
    """
    if not is_uri(location):
        return location
    from urllib.parse import unquote, urlsplit  # noqa: PLC0415 - most locations are plain paths

    try:
        parts = urlsplit(location)
    except ValueError as error:
        raise UsageError(
            "location",
            f"The location is not a valid URI: {error}",
            expected="a path, or a URI such as s3://bucket/folder",
            found=location,
            hint="check the address; a [ in a host starts an IPv6 address",
        ) from error
    return unquote(parts.path) if parts.scheme.lower() == "file" else None
