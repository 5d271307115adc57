"""Lists a checkpoint once, which answers all later questions."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from slackwater.checkpoint.layout import SST_FOLDERS, parse_id, parse_state_file
from slackwater.core.checkpoint import ReadLimits
from slackwater.formats.frames import Budget, Surplus
from slackwater.storage.below import StoreOver
from slackwater.storage.protocols import Folder, ReadStore

_NOTHING = Folder("", (), ())
_NO_NAMES: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Listing:
    folders: dict[str, Folder] = field(default_factory=dict)
    _names: dict[str, frozenset[str]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # Hundreds of partitions hold files of the same names; equal sets become one object, checked once.
        known: dict[frozenset[str], frozenset[str]] = {}
        names = {}
        before: tuple[str, ...] = ()
        held = _NO_NAMES
        for path, folder in self.folders.items():
            # Neighbours are mostly listed in the same order too, and comparing costs a fraction of hashing.
            if folder.files is not before and folder.files != before:
                before = folder.files
                held = frozenset(before)
                held = known.setdefault(held, held)
            names[path] = held
        object.__setattr__(self, "_names", names)

    @classmethod
    def of(cls, path: str, files: Iterable[str]) -> Listing:
        return cls({path: Folder(path, (), tuple(files))})

    def folder(self, path: str) -> Folder:
        """The folder; an absent directory is empty."""
        return self.folders.get(path, _NOTHING)

    def has(self, path: str) -> bool:
        parent, _, name = path.rpartition("/")
        return name in self.names(parent)

    def names(self, path: str) -> frozenset[str]:
        return self._names.get(path, _NO_NAMES)

    def alike(self) -> dict[frozenset[str], list[str]]:
        groups: dict[frozenset[str], list[str]] = {}
        for path, names in self._names.items():
            groups.setdefault(names, []).append(path)
        return groups

    def ids(self, path: str) -> tuple[int, ...]:
        """A log's entries in order; other names are no entries."""
        numbers = (parse_id(name) for name in self.folder(path).files)
        return tuple(sorted(number for number in numbers if number is not None))

    def numbered_directories(self, path: str) -> tuple[int, ...]:
        numbers = (parse_id(name) for name in self.folder(path).directories)
        return tuple(sorted(number for number in numbers if number is not None))


def read_listing(store: ReadStore) -> Listing:
    return Listing({folder.path: folder for folder in store.folders()})


SMALL = 2000
"""Up to so many unknown sizes are asked for."""


def bytes_of(store: ReadStore, listing: Listing, paths: Iterable[str], *, ask: bool) -> int | None:
    """``None`` if sizes would have to be asked for, and ``ask`` is false."""
    total = 0
    for path in paths:
        folder = listing.folder(path)
        if folder.sizes is not None:
            total += sum(folder.sizes)
            continue
        if folder.files and not ask:
            return None
        for name in folder.files:
            # Deleted since it was listed; reading it reports that.
            with suppress(OSError):
                total += store.size(f"{path}/{name}" if path else name)
    return total


def bytes_if_cheap(store: ReadStore, listing: Listing) -> int | None:
    """``None`` if asking for sizes would take too long."""
    files = sum(len(folder.files) for folder in listing.folders.values())
    return bytes_of(store, listing, listing.folders, ask=files <= SMALL and not store.traits.remote)


@dataclass(frozen=True, slots=True)
class LimitedStore(StoreOver):
    """``read`` raises ``FileTooLarge`` above the path's limit."""

    store: ReadStore
    limits: ReadLimits = field(default_factory=ReadLimits)
    surplus: Surplus = field(default_factory=Surplus)

    def read(self, path: str, limit: int | None = None) -> bytes:
        return self.store.read(path, limit_of(path, self.limits) if limit is None else limit)

    def state_budget(self) -> Budget:
        return Budget(self.limits.state, surplus=self.surplus)

    def archive_budget(self) -> Budget:
        return Budget(self.limits.archive, surplus=self.surplus)


def limited(store: ReadStore, limits: ReadLimits | None = None) -> LimitedStore:
    """A store that has limits keeps them."""
    if isinstance(store, LimitedStore) and limits is None:
        return store
    limits = limits or ReadLimits()
    return LimitedStore(store, limits, Surplus(limits.surplus))


def limit_of(path: str, limits: ReadLimits) -> int:
    parent, _, name = path.rpartition("/")
    if parse_state_file(name) or parent.rpartition("/")[2] in SST_FOLDERS:
        return limits.state
    return limits.compacted_log if name.endswith(".compact") else limits.log_entry
