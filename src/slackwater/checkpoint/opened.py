"""A checkpoint that was listed once, for all readers of its files."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slackwater.checkpoint.limited_store import LimitedStore, limited
from slackwater.checkpoint.listing import Listing, read_listing
from slackwater.checkpoint.logs import CheckpointLogs, logs_of_listing
from slackwater.checkpoint.state.inventory import read_inventory
from slackwater.core.errors import FormatError
from slackwater.core.read_options import ReadLimits
from slackwater.core.state import StateInventory
from slackwater.storage.protocols import ReadStore

if TYPE_CHECKING:
    from slackwater.checkpoint.state.reader import BatchState


@dataclass(frozen=True, slots=True)
class OpenedCheckpoint:
    """One listing and what follows from it."""

    store: LimitedStore
    listing: Listing
    logs: CheckpointLogs
    inventory: StateInventory

    def batch_state(self, batch: int) -> BatchState:
        """What is needed to read the state of a batch; an unreadable plan or commit counts as absent here."""
        from slackwater.checkpoint.state.reader import BatchState  # noqa: PLC0415  (imports numpy and pyarrow)

        offset = commit = None
        with suppress(FormatError, OSError):
            offset = self.logs.offset(batch)
        with suppress(FormatError, OSError):
            commit = self.logs.commit(batch)
        return BatchState(self.store, self.listing, self.inventory, batch, offset, commit)


def open_checkpoint(store: ReadStore, limits: ReadLimits | None = None) -> OpenedCheckpoint:
    """List the checkpoint, once, and read its newest log entries. Never fails on damage."""
    store = limited(store, limits)
    listing = read_listing(store)
    return OpenedCheckpoint(store, listing, logs_of_listing(store, listing), read_inventory(listing))
