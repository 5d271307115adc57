"""A checkpoint that is listed once, for all readers."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from slackwater.checkpoint.inventory import Lineage, read_inventory
from slackwater.checkpoint.layout import offset_path
from slackwater.checkpoint.listing import LimitedStore, Listing, limited, read_listing
from slackwater.checkpoint.logs import CheckpointLogs, damage_of, logs_of_listing
from slackwater.core.checkpoint import Damage, ReadLimits, StateFile, StateInventory
from slackwater.core.errors import FormatError
from slackwater.storage.protocols import ReadStore

if TYPE_CHECKING:
    from slackwater.checkpoint.state.reader import BatchState


class OpenedCheckpoint(NamedTuple):
    store: LimitedStore
    listing: Listing
    logs: CheckpointLogs
    inventory: StateInventory

    def batch_state(self, batch: int) -> BatchState:
        """The state after a batch; an unreadable plan or commit counts as absent."""
        from slackwater.checkpoint.state.reader import BatchState  # noqa: PLC0415  (imports numpy and pyarrow)

        offset, commit = None, None
        damage: tuple[Damage, ...] = ()
        try:
            offset = self.logs.offset(batch)
        except (FormatError, OSError) as error:
            # A plan purged by Spark is no damage.
            damage = (damage_of(offset_path(batch), error),) if batch in self.logs.offset_ids else ()
        with suppress(FormatError, OSError):
            commit = self.logs.commit(batch)
        pinning = offset
        nearest = sorted(self.logs.offset_ids, key=lambda number: abs(number - batch))
        for other in nearest if offset is None else ():
            with suppress(FormatError, OSError):
                pinning = self.logs.offset(other)
                break
        return BatchState(self.store, self.listing, self.inventory, batch, offset, commit, pinning, damage)

    def check_changes(self, data: bytes, file: StateFile, *, whole: bool = True) -> Lineage:
        """The lineage of a file of changes, with libraries that a report does without. Raises ``FormatError``."""
        from slackwater.checkpoint.state.changelog import check_changes  # noqa: PLC0415  (imports numpy and pyarrow)

        return check_changes(data, file, self.store.state_budget(), whole=whole)


def open_checkpoint(store: ReadStore, limits: ReadLimits | None = None) -> OpenedCheckpoint:
    """Lists the checkpoint and reads its newest log entries. Never fails on damage."""
    store = limited(store, limits)
    listing = read_listing(store)
    return OpenedCheckpoint(store, listing, logs_of_listing(store, listing), read_inventory(listing))
