"""Where an output is: one spelling for each place, and which URIs name files below it."""

from __future__ import annotations

import os
from urllib.parse import unquote, urlsplit

from slackwater.storage.open import is_uri, local_file_of, resolved


class Place:
    """An output directory, with symlinks and ``..`` resolved once: a log can name a million files."""

    def __init__(self, path: str) -> None:
        self.location = resolved(path)
        self._folders: dict[str, str] = {}

    def relative_path(self, uri: str) -> str | None:
        """The path relative to the directory of the file that a log of Spark names; ``None`` for one elsewhere.

        Spark's logs hold absolute, percent-encoded URIs.
        """
        if not is_uri(uri):
            return None
        path = self._resolved_file(uri)
        name = path.removeprefix(self.location.rstrip("/") + "/")
        return None if name == path or any(part in {"", ".", ".."} for part in name.split("/")) else name

    def _resolved_file(self, uri: str) -> str:
        local = local_file_of(uri)
        if local is None:
            parts = urlsplit(uri)
            return resolved(f"{parts.scheme}://{parts.netloc}{unquote(parts.path)}")
        folder, _, name = local.rpartition("/")
        if folder not in self._folders:
            self._folders[folder] = os.path.realpath(folder).rstrip("/")
        return f"{self._folders[folder]}/{name}"
