"""Finds the kinds of a family, such as sinks, goals or verbs.

``build_generation.py`` has ``build-generation``. Other distributions use an entry point of the family's group, or call
``register``.
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
"""The folder of code that a family's kinds share."""


@dataclass(slots=True)
class Registry(Generic[Kind]):
    """Each module or folder of ``package`` has the kind as its ``attribute``; entry points of ``group`` are for other
    distributions. A kind is imported on first use.
    """

    package: str
    attribute: str
    group: str
    _registered: dict[str, Kind] = field(default_factory=dict)
    _all: tuple[Kind, ...] | None = None

    def register(self, name: str, kind: Kind) -> None:
        if name in self._registered or name in self._modules():
            raise ValueError(f"{self.group} has a {name!r} already")
        self._registered[name] = kind
        self._all = None

    def unregister(self, name: str) -> None:
        del self._registered[name]
        self._all = None

    def names(self) -> tuple[str, ...]:
        """The names in alphabetical order; nothing is imported."""
        return tuple(sorted({*self._modules(), *self._registered, *self._entry_points()}))

    def get(self, name: str) -> Kind | None:
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
        """Ordered by name. Kept: each offset of a history is shown to each kind of source."""
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
