from __future__ import annotations

from dataclasses import dataclass, field

from slackwater.checkpoint.layout import SST_FOLDERS, parse_state_file
from slackwater.core.checkpoint import ReadLimits
from slackwater.formats.frames import Budget, Surplus
from slackwater.storage.below import StoreOver
from slackwater.storage.protocols import ReadStore


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
