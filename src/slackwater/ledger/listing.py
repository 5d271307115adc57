"""Which entries the log folders of a store hold, asked many times a second.

A local folder whose time of change stands still is not listed again: that costs a hundredth of a listing. What may not
happen: an entry overlooked for good. File systems count time in steps of some milliseconds, so a folder is trusted only
once it was listed well after its last change; and some mounts never change the time, so no listing is kept for long.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass

from slackwater.storage.protocols import ReadStore

_ENTRY_NAME = re.compile(r"([0-9]{1,18})(\.compact)?")
_SETTLED_AFTER_S = 0.1
_KEPT_FOR_S = 1.0


@dataclass(frozen=True, slots=True)
class _Listing:
    """``changed_ns`` was seen first at ``since_s``; the rest was listed at ``listed_s``: both monotonic."""

    changed_ns: int | None
    since_s: float
    listed_s: float
    names: Mapping[int, str]
    folders: tuple[str, ...]

    def still_holds(self, changed_ns: int | None, now_s: float) -> bool:
        settled = self.listed_s - self.since_s >= _SETTLED_AFTER_S
        recent = now_s - self.listed_s < _KEPT_FOR_S
        return changed_ns is not None and changed_ns == self.changed_ns and settled and recent


class LogFolders:
    """The log folders below the root of one store."""

    def __init__(self, store: ReadStore) -> None:
        self._store = store
        self._listings: dict[str, _Listing] = {}

    def entries(self, folder: str) -> Mapping[int, str]:
        """The numbered entries of a folder, as entry to file name (``N`` or ``N.compact``); no other names."""
        return self._listing(folder).names

    def folders(self, folder: str) -> tuple[str, ...]:
        """The folders within a folder, but hidden ones."""
        return self._listing(folder).folders

    def _listing(self, folder: str) -> _Listing:
        changed_ns, now_s = self._changed_ns(folder), time.monotonic()
        last = self._listings.get(folder)
        if last is None or not last.still_holds(changed_ns, now_s):
            since_s = last.since_s if last is not None and last.changed_ns == changed_ns else now_s
            last = _Listing(changed_ns, since_s, now_s, *self._list(folder))
            self._listings[folder] = last
        return last

    def _changed_ns(self, folder: str) -> int | None:
        path = self._store.local_path(folder)
        try:
            return None if path is None else os.stat(path).st_mtime_ns  # noqa: PTH116 - ten times a second
        except OSError:
            return None

    def _list(self, folder: str) -> tuple[dict[int, str], tuple[str, ...]]:
        names: dict[int, str] = {}
        folders: list[str] = []
        for listed in self._store.list(folder):
            if listed.is_dir and not listed.name.startswith("."):
                folders.append(listed.name)
            elif (match := _ENTRY_NAME.fullmatch(listed.name)) and not (match[2] and int(match[1]) in names):
                names[int(match[1])] = listed.name
        return names, tuple(folders)
