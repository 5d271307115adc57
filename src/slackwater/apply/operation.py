"""What an operation works with while its plan is applied or undone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from slackwater.apply.journal import Journal
from slackwater.apply.replayer import Replayer
from slackwater.home.home import Home
from slackwater.ledger.ledger import Ledger
from slackwater.model.history import History
from slackwater.model.plan import Action, Inverse, Plan, PreconditionName
from slackwater.model.records import StreamRecord
from slackwater.plan.batch_history import BatchHistory
from slackwater.sinks.contract import Output
from slackwater.storage.local import LocalStore

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
    first needed. ``epoch`` is the fence number of the lease.
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

    def checkpoint(self, number: int) -> Path:
        """The checkpoint directory of a generation; always derived from the home, never read from a plan."""
        return self.home.checkpoint(self.stream.pipeline, self.stream.name, number)
