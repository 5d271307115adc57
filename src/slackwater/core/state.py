"""What the state directories of a checkpoint hold, by file names alone.

Batch N reads state version N and makes version N+1; version 0 is empty and has no file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class StateFileKind(StrEnum):
    """Whole state (``snapshot``, ``zip``) or the changes since the version before (``delta``, ``changelog``)."""

    DELTA = "delta"
    SNAPSHOT = "snapshot"
    ZIP = "zip"
    CHANGELOG = "changelog"

    @property
    def is_whole(self) -> bool:
        """Whether a version can be loaded from this file without an older one."""
        return self in {StateFileKind.SNAPSHOT, StateFileKind.ZIP}

    @property
    def provider(self) -> str:
        """``hdfs`` (HDFSBackedStateStoreProvider) or ``rocksdb`` (RocksDBStateStoreProvider)."""
        return "hdfs" if self in {StateFileKind.DELTA, StateFileKind.SNAPSHOT} else "rocksdb"


class StateFile(NamedTuple):
    """A state file by its name. ``unique_id`` is there with checkpoint format 2 only."""

    version: int
    kind: StateFileKind
    unique_id: str | None = None


class StoreVersions(NamedTuple):
    """Which versions of one store in one partition can be loaded, by file names.

    ``ids`` lists, by version, the unique ids that have a file (format 2); a failed attempt leaves more than one.
    """

    provider: str | None
    loadable: frozenset[int]
    ids: frozenset[tuple[int, str]] = frozenset()
    newest: int = 0
    newest_loadable: int = 0

    def has(self, version: int, unique_id: str | None = None) -> bool:
        """Whether this version, of this attempt where ids are in use, can be loaded."""
        if version == 0:
            return True
        return version in self.loadable and (unique_id is None or (version, unique_id) in self.ids)


@dataclass(frozen=True, slots=True)
class StateInventory:
    """Every store of every partition of every operator: ``stores[operator][partition][store]``."""

    stores: dict[int, dict[int, dict[str, StoreVersions]]] = field(default_factory=dict)

    def names(self, operator: int) -> tuple[str, ...]:
        """The stores of an operator, each as often as it has partitions counted once."""
        return tuple(sorted({name for stores in self.stores.get(operator, {}).values() for name in stores}))

    def each(self) -> Iterator[tuple[int, int, str, StoreVersions]]:
        """``(operator, partition, store, versions)``, in order."""
        for operator, partitions in sorted(self.stores.items()):
            for partition, stores in sorted(partitions.items()):
                for name, versions in sorted(stores.items()):
                    yield operator, partition, name, versions
