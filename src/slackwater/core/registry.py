"""Finds the kinds of one family, such as sinks, goals or verbs: each is one module or folder of the family's package.

A module names its kind: ``build_generation.py`` has ``build-generation``. What others write is found by an entry point
of the family's group, or registered by one call. No list names the kinds, so a new one edits no other file.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Kind = TypeVar("Kind")

COMMON = "common"
"""What the kinds of a family share is a folder with this name in the family's package; it is not a kind."""


@dataclass(slots=True)
class Registry(Generic[Kind]):
    """The kinds of one family.

    ``package`` has one module or folder for each, with the kind as its ``attribute``; the entry points of ``group``
    have the kinds of other distributions. A kind is imported when it is asked for, and all of them by ``all``.
    """

    package: str
    attribute: str
    group: str
    _registered: dict[str, Kind] = field(default_factory=dict)
    _all: tuple[Kind, ...] | None = None

    def register(self, name: str, kind: Kind) -> None:
        """Add a kind of the caller's own. Raises ValueError if there is one of this name."""
        if name in self._registered or name in self._modules():
            raise ValueError(f"{self.group} has a {name!r} already")
        self._registered[name] = kind
        self._all = None

    def unregister(self, name: str) -> None:
        """Remove a kind that was registered by the caller."""
        del self._registered[name]
        self._all = None

    def names(self) -> tuple[str, ...]:
        """The names of all kinds, in alphabetical order. Nothing is imported."""
        return tuple(sorted({*self._modules(), *self._registered, *self._entry_points()}))

    def get(self, name: str) -> Kind | None:
        """The kind of this name, ``None`` if there is none."""
        if name in self._registered:
            return self._registered[name]
        if name in self._modules():
            return self._attribute(name)
        found = self._entry_points().get(name)
        if found is None:
            return None
        loaded: Kind = found.load()
        self._registered[name] = loaded
        return loaded

    def all(self) -> tuple[Kind, ...]:
        """All kinds, in the order of their names. Kept: each offset of a history is shown to each kind of source."""
        if self._all is None:
            kinds = [self.get(name) for name in self.names()]
            self._all = tuple(kind for kind in kinds if kind is not None)
        return self._all

    def _modules(self) -> frozenset[str]:
        return _modules(self.package)

    def _attribute(self, name: str) -> Kind:
        module = importlib.import_module(f"{self.package}.{name.replace('-', '_')}")
        kind: Kind = getattr(module, self.attribute)
        return kind

    def _entry_points(self) -> Mapping[str, EntryPoint]:
        return _entry_points(self.group)


@cache
def _modules(package: str) -> frozenset[str]:
    found = (one.name for one in pkgutil.iter_modules(importlib.import_module(package).__path__))
    return frozenset(name.replace("_", "-") for name in found if name != COMMON)


@cache
def _entry_points(group: str) -> Mapping[str, EntryPoint]:
    """Cached: a search looks into every installed distribution, which takes longer than all rules of a stream."""
    if not _may_have_kinds():
        return {}
    from importlib import metadata  # noqa: PLC0415 - brings email and zipfile, a tenth of the time of a short command

    return {one.name: one for one in metadata.entry_points(group=group)}


@cache
def _may_have_kinds() -> bool:
    """Whether an installed distribution has entry points of one of our groups; an archive may have some."""
    for folder in map(Path, sys.path):
        if folder.is_file():
            return True
        for file in folder.glob("*-info/entry_points.txt"):
            if b"[slackwater." in file.read_bytes():
                return True
    return False
