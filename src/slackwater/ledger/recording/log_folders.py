"""Which entries the log folders of a store hold, asked many times a second.

Spark numbers the entries of its logs without gaps, so between two listings of a local folder only the next name is
checked: that costs a hundredth of a listing. What may not happen: an entry that is never seen, or a
deleted one that is reported for long. Each folder is listed again every second.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass

from slackwater.storage.protocols import ReadStore

_ENTRY_NAME = re.compile(r"([0-9]{1,18})(\.compact)?")
_LISTED_EVERY_S = 1.0


@dataclass(slots=True)
class _Listing:
    """The entries of a folder as entry to file name; ``listed_s`` is monotonic."""

    names: dict[int, str]
    highest: int
    listed_s: float


class LogFolders:
    """The log folders below the root of one store."""

    def __init__(self, store: ReadStore) -> None:
        self._store = store
        self._listings: dict[str, _Listing] = {}

    def entries(self, folder: str) -> Mapping[int, str]:
        """The numbered entries of a folder, as entry to file name (``N`` or ``N.compact``); no other names.

        Holds until the folder is asked for again.
        """
        known = self._listings.get(folder)
        if known is None or not self._can_go_on_from(folder, known):
            names = self._list(folder)
            self._listings[folder] = _Listing(names, max(names, default=-1), time.monotonic())
            return names
        while (name := self._there(folder, known.highest + 1)) is not None:
            known.highest += 1
            known.names[known.highest] = name
        return known.names

    def folders(self, folder: str) -> tuple[str, ...]:
        """The folders within a folder, but hidden ones."""
        return tuple(
            entry.name for entry in self._store.list(folder) if entry.is_dir and not entry.name.startswith(".")
        )

    def _can_go_on_from(self, folder: str, known: _Listing) -> bool:
        # On a remote store a check for a name takes a request, as a listing does. A trim removes the newest entries.
        return (
            not self._store.traits.remote
            and time.monotonic() - known.listed_s < _LISTED_EVERY_S
            and known.highest in known.names
            and self._store.exists(f"{folder}/{known.names[known.highest]}")
        )

    def _there(self, folder: str, entry: int) -> str | None:
        names = (str(entry), f"{entry}.compact")
        return next((name for name in names if self._store.exists(f"{folder}/{name}")), None)

    def _list(self, folder: str) -> dict[int, str]:
        names: dict[int, str] = {}
        for listed in self._store.list(folder):
            match = None if listed.is_dir else _ENTRY_NAME.fullmatch(listed.name)
            if match is not None and not (match[2] and int(match[1]) in names):
                names[int(match[1])] = listed.name
        return names
