"""Directories of this machine, by path or ``file:`` URI."""

from __future__ import annotations

from slackwater.storage.local import LOCAL, LocalStore
from slackwater.storage.open import local_path_of
from slackwater.storage.protocols import WriteStore
from slackwater.storage.registry import StoreKind


class LocalKind(StoreKind):
    def open(self, location: str, *, private: bool = False) -> WriteStore:
        return LocalStore(local_path_of(location) or location, private=private)


STORE = LocalKind(("file",), LOCAL)
