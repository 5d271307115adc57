from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

from slackwater.core.records import History, StreamRecord
from slackwater.core.sink import Cut
from slackwater.ledger.home import Home
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.recording.batch_history import BatchHistory
from slackwater.ledger.recording.places import generation_location
from slackwater.operations.action import Action, Inverse, PreconditionName
from slackwater.operations.apply.adopted import AdoptedCheckpoint, AdoptedDirectory, AdoptedObjects
from slackwater.operations.apply.journal import Journal
from slackwater.operations.apply.replayer import Replayer
from slackwater.operations.plan.plan import Plan
from slackwater.sinks.common.contract import Output
from slackwater.storage.open import Location, open_write_store
from slackwater.storage.protocols import WriteStore

BACKUP = "backup"
PLAN_FILE = "plan.json"


class Progress(Protocol):
    def say(self, text: str) -> None:
        """A message."""

    def action(self, action: Action | Inverse) -> None:
        """An action starts."""

    def batch(self, batch: int) -> None:
        """A batch was replayed."""


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation on a stream, under the stream's lease.

    ``look`` forgets looked-up facts. ``readers`` are other streams that have read rows which a cut removes. ``epoch``
    is the lease's fence number. ``whole`` is the folder of the operation for all stages. ``session`` are options of
    Spark, for printed commands.
    """

    plan: Plan
    stream: StreamRecord
    home: Home
    ledger: Ledger
    journal: Journal
    output: Output
    history: History
    look: Callable[[], Mapping[PreconditionName, Callable[[], str]]]
    open_replayer: Callable[[], Replayer]
    readers: Callable[[StreamRecord, Cut], list[str]]
    progress: Progress
    epoch: int
    check_lease: Callable[[], None]
    whole: Location
    session: tuple[str, ...] = ()

    @property
    def is_part(self) -> bool:
        return self.whole != self.folder

    @property
    def is_recorded(self) -> bool:
        return self.journal.files is not None

    @property
    def folder(self) -> Location:
        return self.home.operation(self.stream.pipeline, self.stream.name, self.plan.id)

    @property
    def files(self) -> WriteStore:
        return open_write_store(self.folder, private=True)

    @property
    def backup(self) -> WriteStore:
        return open_write_store(self.folder / BACKUP, private=True)

    @property
    def batches(self) -> BatchHistory:
        return BatchHistory(self.history)

    @property
    def adopted(self) -> AdoptedCheckpoint | None:
        if not self.stream.is_watched:
            return None
        name = self.plan.stream
        # Whichever generation is in use is the one at the path that the code names.
        current = self.ledger.generation(name, self.ledger.find_stream(name).current_generation)
        moves = open_write_store(current.location).traits.moves_directories
        kind = AdoptedDirectory if moves else AdoptedObjects
        return kind(self.plan, self.ledger, current.location, self.folder)

    def index_of(self, step: Action | Inverse) -> int:
        actions = (index for index, one in enumerate(self.plan.actions) if one is step)
        inverses = (one.action for one in self.plan.undo if one.inverse is step)
        return next(chain(actions, inverses))

    def store(self, number: int) -> WriteStore:
        return open_write_store(self.checkpoint(number))

    def checkpoint(self, number: int) -> Location:
        """The generation's location, never read from a plan."""
        adopted = self.adopted
        if adopted is None:
            return generation_location(self.home, self.ledger, self.stream, number)
        if adopted.exchanges(number):
            return adopted.checkpoint(number)
        # One that only runs the batch of a backfill never comes to the path that the code names.
        return self.home.checkpoint(self.stream.pipeline, self.stream.name, number)
