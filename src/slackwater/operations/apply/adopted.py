"""The checkpoint at a path that the user's own code names, in which an operation puts another one in place.

The new checkpoint is built elsewhere; then it is put in place, in a way that the store allows, and the old one is kept.
Whichever is at the path is the generation in use.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from slackwater.core.records import GenerationRecord
from slackwater.ledger.ledger import Ledger
from slackwater.operations.action import Switch
from slackwater.operations.plan.plan import Plan
from slackwater.storage.location import Location
from slackwater.storage.protocols import ReadStore


@dataclass(frozen=True)
class AdoptedCheckpoint(ABC):
    """What an operation does with it. ``location`` is the path as ``slackwater.watch`` recorded it.

    ``folder`` is the operation's folder in the home.
    """

    plan: Plan
    ledger: Ledger
    location: str
    folder: Location

    @cached_property
    def switch(self) -> Switch:
        """The generations of the old and of the new checkpoint."""
        return next(one.switch for one in self.plan.actions if one.switch is not None)

    def exchanges(self, number: int) -> bool:
        """Whether the generation is the old or the new one of the operation's switch."""
        switches = (one.switch for one in self.plan.actions if one.switch is not None)
        return any(number in (switch.old, switch.new) for switch in switches)

    @property
    @abstractmethod
    def is_new_in_place(self) -> bool:
        """Whether the new checkpoint is at the path that the code names."""

    @property
    @abstractmethod
    def by_hand(self) -> tuple[str, ...]:
        """How to finish or take back by hand what a failure of the machine has left halfway."""

    @abstractmethod
    def checkpoint(self, number: int) -> Location:
        """The directory of the old or the new generation that is not changed by the user's program."""

    @property
    @abstractmethod
    def is_old_in_place(self) -> bool:
        """Whether the old checkpoint is at the path that the code names; between two steps none may be there."""

    @abstractmethod
    def store_of_old(self) -> ReadStore:
        """Where the old generation is while it is not in place.

        Raises Refused (``backup-damaged``) if a copy of its files was made that is no longer complete.
        """

    @abstractmethod
    def store_of_new(self) -> ReadStore:
        """Where the new generation is now, with what the user's program has added."""

    @abstractmethod
    def swap_in(self) -> None:
        """Put the new checkpoint in place, or what is left of that to do."""

    @abstractmethod
    def swap_back(self) -> None:
        """Put the old checkpoint in place again, or what is left of that to do."""

    @abstractmethod
    def end(self, *, applied: bool) -> None:
        """Remove what was needed only until the ledger has recorded which one is in place."""

    @property
    @abstractmethod
    def kept(self) -> Location:
        """Where the old checkpoint is while the new one is in place."""

    @property
    @abstractmethod
    def built(self) -> Location:
        """Where the new checkpoint is built."""

    def record_in_place(self, new: GenerationRecord) -> None:
        """Record in the ledger that the new checkpoint is in place."""
        self._switch(new.number, [replace(new, location=self.location), self._old(str(self.kept))])
        self.end(applied=True)

    def record_back(self) -> None:
        """Record that the old checkpoint is in its place again."""
        new = self.recorded(self.switch.new)
        built = [] if new is None else [replace(new, location=str(self.built))]
        self._switch(self.switch.old, [*built, self._old(self.location)])
        self.end(applied=False)

    def recorded(self, number: int) -> GenerationRecord | None:
        """What the ledger has of a generation."""
        return next((one for one in self.ledger.generations(self.plan.stream) if one.number == number), None)

    def _old(self, location: str) -> GenerationRecord:
        return replace(self.ledger.generation(self.plan.stream, self.switch.old), location=location)

    def _switch(self, current: int, records: Sequence[GenerationRecord]) -> None:
        # One transaction: after a kill the generation in use must be the one that is recorded at the path.
        self.ledger.switch_generations(self.plan.stream, current, records)
