"""Opens the store at a path or URI. Local stores need only the standard library."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from os import PathLike
from pathlib import Path
from typing import Self
from urllib.parse import unquote, urlsplit

from slackwater.core.errors import UsageError
from slackwater.core.escaping import is_path
from slackwater.core.masking import mask
from slackwater.storage.local import LocalStore
from slackwater.storage.protocols import ReadStore, WriteStore
from slackwater.storage.registry import STORES, kind_of

_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+:")


def open_read_store(location: str | PathLike[str]) -> ReadStore:
    """The store at a location.

    Raises ``UsageError`` for an unknown scheme and ``EnvironmentMissing`` for a missing package.
    """
    return open_write_store(location)


def open_write_store(location: str | PathLike[str], *, private: bool = False) -> WriteStore:
    """Like ``open_read_store``, for a store that may be changed.

    ``private``: new files are for their owner only, if the store has modes.
    """
    location = os.fspath(location)
    local = local_path_of(location)
    if local is not None:
        return LocalStore(local, private=private)
    return kind_of(location).open(location, private=private)


def check_location(location: str) -> None:
    """Raises ``UsageError`` for an unknown kind of store or a password in the URI."""
    if local_path_of(location) is None:
        kind_of(location)


def spark_uri(location: str) -> str:
    if local_path_of(location) is not None:
        return location
    return kind_of(location).spark_uri(location)


def connectors_of(locations: Iterable[str]) -> frozenset[str]:
    kinds = (kind_of(one) for one in locations if local_path_of(one) is None)
    return frozenset(kind.connector for kind in kinds if kind.connector is not None)


def session_settings_of(connector: str) -> Mapping[str, str]:
    settings = [kind.session_settings() for kind in STORES.all() if kind.connector == connector]
    return {name: value for each in settings for name, value in each.items()}


def resolved(location: str) -> str:
    """The normalised location: local paths without symlinks and ``..``, otherwise the URI."""
    local = local_path_of(location)
    if local is not None:
        return os.path.realpath(local)
    scheme, _, rest = location.partition(":")
    return f"{_compared(scheme.lower())}:{rest}".rstrip("/")


def is_same_store(one: str, other: str) -> bool:
    return _authority(one) == _authority(other)


def _authority(location: str) -> str | None:
    if local_path_of(location) is not None:
        return None
    scheme, _, rest = resolved(location).partition(":")
    return f"{scheme}:{rest.removeprefix('//').partition('/')[0]}"


@cache
def _compared(scheme: str) -> str:
    """The main scheme of a kind, such as ``s3`` for ``s3a``. Cached: a log can name a million paths."""
    return next((kind.schemes[0] for kind in STORES.all() if scheme in kind.schemes), scheme)


def is_uri(location: str) -> bool:
    return _SCHEME.match(location) is not None


def check_no_secret(location: str) -> None:
    """Raises ``UsageError`` for a location with a password, which would be recorded and shown."""
    if mask(location) != location:
        raise UsageError(
            "location-secret",
            "A location cannot hold a password or a key",
            where=location,
            expected="a URI without them, such as s3://bucket/folder",
            found="a password or key in it, not shown here",
            hint="remove it, and set it in the environment or in the configuration of Hadoop",
        )


def local_path_of(location: str) -> str | None:
    """The local path of ``location``; ``None`` for a different kind of store.

    Hadoop writes ``file:/a``, ``file:///a`` and ``file://host/a``; URI paths are percent-encoded.
    """
    if not is_uri(location):
        return _checked(location)
    check_no_secret(location)
    return _local_path(location)


def local_file_of(uri: str) -> str | None:
    """The local path of a file in a Spark log; the name is not validated, as no user typed it."""
    if not is_uri(uri):
        return uri
    folder, _, name = uri.rpartition("/")
    local = _local_folder(folder)
    return None if local is None else f"{local}/{unquote(name)}"


# A log can name a million files of one folder.
@lru_cache(maxsize=1000)
def _local_folder(folder: str) -> str | None:
    return _local_path(folder)


def _local_path(location: str) -> str | None:
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
    return _checked(unquote(parts.path)) if parts.scheme.lower() == "file" else None


def _checked(path: str) -> str:
    if not is_path(path):
        raise UsageError(
            "location",
            "The location is not a valid path of a file system",
            expected="a path without NUL, whose characters UTF-8 has",
            found=ascii(path),
            hint="correct the path, or what is after a % in the URI",
        )
    return path


__all__ = ["AnyLocation", "Location"]

AnyLocation = str | PathLike[str]


class Location(str):
    """An absolute path or URI without a final ``/``. Raises ``UsageError`` for a malformed URI or a password in it."""

    __slots__ = ()

    def __new__(cls, given: AnyLocation) -> Self:
        local = local_path_of(os.fspath(given))
        found = os.fspath(given).rstrip("/") if local is None else str(Path(local).absolute())
        return super().__new__(cls, found)

    def __truediv__(self, name: str) -> Location:
        return str.__new__(Location, f"{self.rstrip('/')}/{name}")

    @property
    def name(self) -> str:
        return self.rpartition("/")[2]

    @property
    def parent(self) -> Location:
        return str.__new__(Location, self.rpartition("/")[0] or "/")

    @property
    def local(self) -> Path | None:
        path = local_path_of(self)
        return None if path is None else Path(path)
