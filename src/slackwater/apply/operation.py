"""What an operation works with while its plan is applied or undone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from slackwater.apply.adopted import AdoptedCheckpoint
from slackwater.apply.adopted_directory import AdoptedDirectory
from slackwater.apply.adopted_objects import AdoptedObjects
from slackwater.apply.journal import Journal
from slackwater.apply.replayer import Replayer
from slackwater.home.home import Home
from slackwater.ledger.ledger import Ledger
from slackwater.model.actions import Action, Inverse
from slackwater.model.history import History
from slackwater.model.plan import Plan, PreconditionName
from slackwater.model.records import StreamRecord
from slackwater.plan.batch_history import BatchHistory
from slackwater.sinks.contract import Output
from slackwater.storage.local import LocalStore
from slackwater.storage.open import local_path_of

BACKUP = "backup"
PLAN_FILE = "plan.json"


class Progress(Protocol):
    """The display of an operation."""

    def action(self, action: Action | Inverse) -> None:
        """An action starts."""

    def batch(self, batch: int) -> None:
        """A batch was replayed."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation on one stream, under the stream's lease.

    ``facts`` look up what preconditions are about, each time they are called; ``open_replayer`` starts Spark when it is
    first needed. ``epoch`` is the fence number of the lease. ``whole`` is the folder of the operation that this one
    belongs to: its own, unless it is on a later stage of a plan for several streams.
    """

    plan: Plan
    stream: StreamRecord
    home: Home
    ledger: Ledger
    journal: Journal
    output: Output
    history: History
    facts: Mapping[PreconditionName, Callable[[], str]]
    open_replayer: Callable[[], Replayer]
    progress: Progress
    epoch: int
    whole: Path

    @property
    def is_part(self) -> bool:
        """Whether it is on a later stage of a plan for several streams."""
        return self.whole != self.folder

    @property
    def folder(self) -> Path:
        """The operation's folder in the home, with its plan, journal and backup."""
        return self.home.operation(self.stream.pipeline, self.stream.name, self.plan.id)

    @property
    def backup(self) -> LocalStore:
        """Where what is cut from the sink is kept."""
        return LocalStore(self.folder / BACKUP, private=True)

    @property
    def batches(self) -> BatchHistory:
        """The recorded batches, decoded."""
        return BatchHistory(self.history)

    @property
    def adopted(self) -> AdoptedCheckpoint | None:
        """The checkpoint of a query that the user's own program runs; ``None`` where Slackwater runs the stream."""
        if not self.stream.is_watched:
            return None
        name = self.plan.stream
        # Whichever generation is in use is the one at the path that the code names.
        current = self.ledger.generation(name, self.ledger.find_stream(name).current_generation)
        kind = AdoptedObjects if local_path_of(current.location) is None else AdoptedDirectory
        return kind(self.plan, self.ledger, current.location, self.folder)

    def checkpoint(self, number: int) -> Path:
        """The directory of a checkpoint that the operation builds or has built; never read from a plan."""
        adopted = self.adopted
        if adopted is not None:
            return adopted.checkpoint(number)
        return self.home.checkpoint(self.stream.pipeline, self.stream.name, number)
