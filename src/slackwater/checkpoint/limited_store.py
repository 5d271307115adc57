"""A checkpoint's store whose reads never take more bytes than the limit for that kind of file."""

from __future__ import annotations

from dataclasses import dataclass, field

from slackwater.checkpoint.layout import SST_FOLDERS, parse_state_file
from slackwater.core.checkpoint import ReadLimits
from slackwater.formats.frames import Budget, Surplus
from slackwater.storage.below import StoreOver
from slackwater.storage.protocols import ReadStore


@dataclass(frozen=True, slots=True)
class LimitedStore(StoreOver):
    """A ``ReadStore`` over another one. ``read`` raises ``FileTooLarge`` above the limit of the path."""

    store: ReadStore
    limits: ReadLimits = field(default_factory=ReadLimits)
    surplus: Surplus = field(default_factory=Surplus)

    def read(self, path: str, limit: int | None = None) -> bytes:
        return self.store.read(path, limit_of(path, self.limits) if limit is None else limit)

    def state_budget(self) -> Budget:
        """For the state of one store in one partition."""
        return Budget(self.limits.state, surplus=self.surplus)

    def archive_budget(self) -> Budget:
        """For the small files in one RocksDB zip."""
        return Budget(self.limits.archive, surplus=self.surplus)


def limited(store: ReadStore, limits: ReadLimits | None = None) -> LimitedStore:
    """The store with these limits, the default ones where none are given; one that has limits keeps them."""
    if isinstance(store, LimitedStore) and limits is None:
        return store
    limits = limits or ReadLimits()
    return LimitedStore(store, limits, Surplus(limits.surplus))


def limit_of(path: str, limits: ReadLimits) -> int:
    """The most bytes to take of the file at ``path``."""
    parent, _, name = path.rpartition("/")
    if parse_state_file(name) or parent.rpartition("/")[2] in SST_FOLDERS:
        return limits.state
    return limits.compacted_log if name.endswith(".compact") else limits.log_entry
