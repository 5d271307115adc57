"""An adopted checkpoint on a local disk: two directories side by side, which change places.

From just before the exchange until the ledger has recorded it, a mark in the new checkpoint shows where that is, so
that each step can be repeated after a kill. Before and afterwards the ledger shows it.
"""

from __future__ import annotations

import shutil
from functools import cached_property
from pathlib import Path

from slackwater.checkpoint.writer import relocate_operators
from slackwater.core.errors import Refused
from slackwater.operations.apply.adopted import AdoptedCheckpoint
from slackwater.operations.plan.adopted import recovery
from slackwater.sinks.common.aside import Aside, State
from slackwater.storage.local import LocalStore
from slackwater.storage.location import Location

_NEW: State = "staged"


class AdoptedDirectory(AdoptedCheckpoint):
    """The directory that the code names, and a hidden one beside it that the operation owns."""

    @cached_property
    def aside(self) -> Aside:
        """The directory that the code names (``real``), and the one beside it (``folder``)."""
        return Aside(self.location, self.plan.id)

    @property
    def is_new_in_place(self) -> bool:
        if self.aside.mark_in(self.aside.real) is not None:
            return True
        if self.aside.mark_in(self.aside.folder) is not None:
            return False
        record = self.recorded(self.switch.new)
        return record is not None and record.location == self.location

    @property
    def is_old_in_place(self) -> bool:
        return self._path_of_old == self.aside.real

    @property
    def _path_of_old(self) -> Path:
        """Where the old checkpoint is, also between two renames; the new one has the operation's mark then."""
        aside = self.aside
        if not aside.is_interrupted:
            return aside.folder if self.is_new_in_place else aside.real
        if aside.mark_in(aside.exchange_path) is None:
            return aside.exchange_path
        return aside.folder if aside.folder.exists() else aside.real

    @property
    def by_hand(self) -> tuple[str, ...]:
        return recovery(str(self.aside.real), self.plan.id)

    @property
    def kept(self) -> Location:
        return Location(self.aside.folder)

    @property
    def built(self) -> Location:
        return Location(self.aside.folder)

    def checkpoint(self, number: int) -> Location:
        in_place = self.is_new_in_place is (number == self.switch.new)
        return Location(self.aside.real if in_place else self.aside.folder)

    def store_of_old(self) -> LocalStore:
        return LocalStore(self._path_of_old)

    def store_of_new(self) -> LocalStore:
        return LocalStore(self.checkpoint(self.switch.new))

    def put_in_place(self) -> None:
        """Exchange the two directories, unless that was done. Raises Refused where they cannot be renamed."""
        self.aside.finish_exchange()
        if not self.is_new_in_place:
            relocate_operators(LocalStore(self.aside.folder), str(self.aside.real))
            if self.aside.real.exists():
                shutil.copymode(self.aside.real, self.aside.folder)
            self.aside.set_mark(self.aside.folder, _NEW)
            self._exchange(self.aside.folder, self.aside.real)

    def put_back(self) -> None:
        """The same the other way round; the mark stays in the new checkpoint, which is removed next."""
        self.aside.finish_exchange()
        if self.is_new_in_place:
            self.aside.set_mark(self.aside.real, _NEW)
            self._exchange(self.aside.real, self.aside.folder)

    def end(self, *, applied: bool) -> None:
        if applied:
            self.aside.remove_mark(self.aside.real)

    def _exchange(self, new: Path, other: Path) -> None:
        try:
            if other.exists():
                self.aside.exchange()
            else:
                # A checkpoint that was deleted: there is nothing to exchange with.
                self.aside.move(new, other)
        except (Refused, OSError) as error:
            raise Refused(
                "checkpoint-fixed",
                f"The directory of the checkpoint cannot change places with another: {error}",
                where=str(self.aside.real),
                expected="a directory that can be renamed, and a parent folder that can be written to",
                hint="mount or move it so that it can be renamed, then run the command again",
            ) from error
