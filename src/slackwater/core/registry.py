"""The kinds of a family: sinks, sources or stores.

Other distributions use an entry point of the family's group, or call ``register``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Kind = TypeVar("Kind")


@dataclass(slots=True)
class Registry(Generic[Kind]):
    """The places of the ``own`` kinds, as ``module:NAME``; entry points of ``group`` are for other distributions. A
    kind is imported on first use.
    """

    group: str
    own: Mapping[str, str]
    _registered: dict[str, Kind] = field(default_factory=dict)
    _all: tuple[Kind, ...] | None = None

    def register(self, name: str, kind: Kind) -> None:
        if name in self._registered or name in self.own:
            raise ValueError(f"{self.group} has a {name!r} already")
        self._registered[name] = kind
        self._all = None

    def unregister(self, name: str) -> None:
        del self._registered[name]
        self._all = None

    def names(self) -> tuple[str, ...]:
        """The names in alphabetical order; nothing is imported."""
        return tuple(sorted({*self.own, *self._registered, *_entry_points(self.group)}))

    def get(self, name: str) -> Kind | None:
        if name not in self._registered:
            found = _entry_points(self.group).get(name) if name not in self.own else None
            if found is None and name not in self.own:
                return None
            self._registered[name] = resolve_name(self.own[name]) if found is None else found.load()
        return self._registered[name]

    def all(self) -> tuple[Kind, ...]:
        """Ordered by name. Kept: each offset of a history is shown to each kind of source."""
        if self._all is None:
            kinds = [self.get(name) for name in self.names()]
            self._all = tuple(kind for kind in kinds if kind is not None)
        return self._all


@cache
def _entry_points(group: str) -> Mapping[str, EntryPoint]:
    """Cached: a search of every distribution takes longer than all rules of a stream."""
    if not _may_have_kinds():
        return {}
    from importlib import metadata  # noqa: PLC0415 - brings email and zipfile, a tenth of the time of a short command

    return {one.name: one for one in metadata.entry_points(group=group)}


@cache
def _may_have_kinds() -> bool:
    for folder in map(Path, sys.path):
        if folder.is_file():
            return True
        for file in folder.glob("*-info/entry_points.txt"):
            if b"[slackwater." in file.read_bytes():
                return True
    return False
