"""Where an output is: one spelling for each place, and which URIs name files below it."""

from __future__ import annotations

import os
from urllib.parse import unquote, urlsplit

from slackwater.storage.open import is_uri, local_path_of

_SAME_SCHEME = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "gcs": "gs"}


def resolved(location: str) -> str:
    """The one spelling of a location: symlinks and ``..`` resolved, no slash at the end."""
    local = local_path_of(location)
    if local is not None:
        return os.path.realpath(local)
    scheme, _, rest = location.partition(":")
    return f"{_SAME_SCHEME.get(scheme.lower(), scheme.lower())}:{rest}".rstrip("/")


def name_below(root: str, uri: str) -> str | None:
    """The path relative to ``root`` (resolved) of the file that a log of Spark names by ``uri``; ``None`` elsewhere.

    Spark's logs hold percent-encoded URIs.
    """
    if not is_uri(uri):
        return None
    path = _resolved_uri(uri)
    name = path.removeprefix(root.rstrip("/") + "/")
    return None if name == path or any(part in {"", ".", ".."} for part in name.split("/")) else name


def _resolved_uri(uri: str) -> str:
    local = local_path_of(uri)
    if local is not None:
        folder, _, name = local.rpartition("/")
        return f"{_resolved_folder(folder).rstrip('/')}/{name}"
    parts = urlsplit(uri)
    return resolved(f"{parts.scheme}://{parts.netloc}{unquote(parts.path)}")


def _resolved_folder(folder: str) -> str:
    return os.path.realpath(folder)
