"""An adopted checkpoint on a local disk: two directories side by side, which change places.

From just before the exchange until the ledger has recorded it, a mark in the new checkpoint shows where that is, so
that each step can be repeated after a kill. Before and afterwards the ledger shows it.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from slackwater.checkpoint.writer import relocate_operators
from slackwater.core.errors import Refused
from slackwater.operations.apply.adopted import AdoptedCheckpoint
from slackwater.operations.plan.adopted import recovery
from slackwater.sinks.common.staging import StagingDirectory, State
from slackwater.storage.local import LocalStore, keep_owner_and_mode
from slackwater.storage.location import Location

_NEW: State = "staged"


class AdoptedDirectory(AdoptedCheckpoint):
    """The directory that the code names, and a hidden one next to it that the operation owns."""

    @cached_property
    def staging(self) -> StagingDirectory:
        """The directory that the code names (``real``), and the one next to it (``folder``)."""
        return StagingDirectory(self.location, self.plan.id)

    @property
    def is_new_in_place(self) -> bool:
        if self.staging.mark_in(self.staging.real) is not None:
            return True
        if self.staging.mark_in(self.staging.folder) is not None:
            return False
        record = self.recorded(self.switch.new)
        return record is not None and record.location == self.location

    @property
    def is_old_in_place(self) -> bool:
        return self._path_of_old == self.staging.real

    @property
    def _path_of_old(self) -> Path:
        """Where the old checkpoint is, also between two renames; the new one has the operation's mark then."""
        staging = self.staging
        if not staging.is_interrupted:
            return staging.folder if self.is_new_in_place else staging.real
        if staging.mark_in(staging.exchange_path) is None:
            return staging.exchange_path
        # In an undo the new checkpoint is moved out of the path first, and then the old one into it.
        return staging.folder if staging.folder.exists() else staging.real

    @property
    def by_hand(self) -> tuple[str, ...]:
        return recovery(str(self.staging.real), self.plan.id)

    @property
    def kept(self) -> Location:
        return Location(self.staging.folder)

    @property
    def built(self) -> Location:
        return Location(self.staging.folder)

    def checkpoint(self, number: int) -> Location:
        in_place = self.is_new_in_place is (number == self.switch.new)
        return Location(self.staging.real if in_place else self.staging.folder)

    def store_of_old(self) -> LocalStore:
        return LocalStore(self._path_of_old)

    def store_of_new(self) -> LocalStore:
        return LocalStore(self.checkpoint(self.switch.new))

    def swap_in(self) -> None:
        """Exchange the two directories, unless that was done. Raises Refused where they cannot be renamed."""
        # An exchange by renames that was killed is finished first: until then a mark can be in a third directory.
        self.staging.finish_exchange()
        if not self.is_new_in_place:
            # Operator metadata names schema files by absolute paths (``stateSchemaFilePaths``).
            relocate_operators(LocalStore(self.staging.folder), str(self.staging.real))
            # That of a new directory depends on this process.
            keep_owner_and_mode(self.staging.real, self.staging.folder)
            self.staging.set_mark(self.staging.folder, _NEW)
            self._exchange(self.staging.folder, self.staging.real)

    def swap_back(self) -> None:
        """The same the other way round; the mark stays in the new checkpoint, which is removed next."""
        self.staging.finish_exchange()
        if self.is_new_in_place:
            self.staging.set_mark(self.staging.real, _NEW)
            self._exchange(self.staging.real, self.staging.folder)

    def end(self, *, applied: bool) -> None:
        if applied:
            self.staging.remove_mark(self.staging.real)

    def _exchange(self, new: Path, other: Path) -> None:
        try:
            if other.exists():
                self.staging.exchange()
            else:
                # A checkpoint that was deleted: there is nothing to exchange with.
                self.staging.move(new, other)
        except (Refused, OSError) as error:
            raise Refused(
                "checkpoint-fixed",
                f"The directory of the checkpoint cannot change places with another: {error}",
                where=str(self.staging.real),
                expected="a directory that can be renamed, and a parent folder that can be written to",
                hint="mount or move it so that it can be renamed, then run the command again",
            ) from error
