"""Where a folder or file is: a path of this machine, or a URI of a store."""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path
from typing import Self

from slackwater.storage.open import local_path_of

__all__ = ["AnyLocation", "Location"]

AnyLocation = str | PathLike[str]


class Location(str):
    """An absolute path or a URI, without ``/`` at its end; ``location / name`` is what is in that folder.

    Raises ``UsageError`` for a URI that cannot be parsed or that has a password in it.
    """

    __slots__ = ()

    def __new__(cls, given: AnyLocation) -> Self:
        local = local_path_of(os.fspath(given))
        found = os.fspath(given).rstrip("/") if local is None else str(Path(local).absolute())
        return super().__new__(cls, found)

    def __truediv__(self, name: str) -> Location:
        return str.__new__(Location, f"{self.rstrip('/')}/{name}")

    @property
    def name(self) -> str:
        """The last part."""
        return self.rpartition("/")[2]

    @property
    def parent(self) -> Location:
        """The folder that it is in."""
        return str.__new__(Location, self.rpartition("/")[0] or "/")

    @property
    def local(self) -> Path | None:
        """The path on this machine; ``None`` on another kind of store."""
        path = local_path_of(self)
        return None if path is None else Path(path)
