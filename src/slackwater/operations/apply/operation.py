"""An operation on a stream, and its backup with the hashes of its records in the journal."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain

from slackwater.core.records import History, StreamRecord
from slackwater.core.sink import Cut
from slackwater.ledger.home import Home
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.recording.batch_history import BatchHistory
from slackwater.operations.action import Action, Display, Inverse, PreconditionName
from slackwater.operations.apply.adopted import CheckpointPlaces, places_of
from slackwater.operations.apply.journal import Journal
from slackwater.operations.apply.replayer import Replayer
from slackwater.operations.plan.plan import Plan
from slackwater.sinks.common.changes import damaged
from slackwater.sinks.common.contract import Output
from slackwater.storage.below import Below
from slackwater.storage.open import Location, open_write_store
from slackwater.storage.protocols import WriteStore

BACKUP = "backup"
PLAN_FILE = "plan.json"


BACKUP_FACT = "backup"
"""The last record counts, but a kill may have left the record before it."""
_Hashes = Mapping[str, list[str]]


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
    progress: Display
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
    def places(self) -> CheckpointPlaces:
        return places_of(self.plan, self.stream, self.home, self.ledger)

    def index_of(self, step: Action | Inverse) -> int:
        actions = (index for index, one in enumerate(self.plan.actions) if one is step)
        inverses = (one.action for one in self.plan.undo if one.inverse is step)
        return next(chain(actions, inverses))

    def store(self, number: int) -> WriteStore:
        return open_write_store(self.checkpoint(number))

    def checkpoint(self, number: int) -> Location:
        return self.places.checkpoint(number)


class WitnessedBackup(Below):
    def __init__(self, operation: Operation, action: Action) -> None:
        super().__init__(operation.files, BACKUP)
        self._operation = operation
        self._action = action
        self._index = operation.index_of(action)

    def write(self, path: str, data: bytes) -> None:
        """Copies of files, hashed in records, come in pieces."""
        known = hashes_of(self._operation, self._index).get(path, [])
        digest = hashlib.sha256(data).hexdigest()
        if known:
            # It is replaced: until it is durable, the one before counts.
            self._journal(path, [*known, digest])
            self.write_pieces(path, (data,))
        else:
            self.write_pieces(path, (data,))
            self._journal(path, [digest])

    def _journal(self, path: str, hashes: list[str]) -> None:
        operation = self._operation
        facts = operation.journal.facts(self._index)
        backup = {**hashes_of(operation, self._index), path: hashes}
        facts = {**facts, BACKUP_FACT: backup}
        operation.journal.write(self._index, self._action.kind, "started", operation.ledger.now_ms(), facts)


def hashes_of(operation: Operation, index: int) -> _Hashes:
    found: _Hashes = operation.journal.facts(index).get(BACKUP_FACT, {})
    return found


def backup_for(operation: Operation, action: Action) -> WriteStore:
    """Raises Refused (``backup-damaged``) if it was changed. Leftovers without a journaled hash are written again."""
    index = operation.index_of(action)
    if operation.is_recorded and not hashes_of(operation, index):
        backup = operation.backup
        for folder in list(backup.folders()):
            for name in folder.files:
                backup.delete(f"{folder.path}/{name}".lstrip("/"))
    check_records(operation, index)
    return WitnessedBackup(operation, action)


def changed_nothing(operation: Operation, index: int) -> bool:
    return operation.is_recorded and not hashes_of(operation, index)


def check_started(operation: Operation, action: Action) -> None:
    """Raises Refused (``backup-damaged``) if a record has changed."""
    index = operation.index_of(action)
    if operation.journal.state(index) == "started":
        check_records(operation, index)


def check_records(operation: Operation, index: int) -> None:
    backup = operation.backup
    for path, hashes in hashes_of(operation, index).items():
        try:
            found = hashlib.sha256(backup.read(path)).hexdigest()
        except (OSError, ValueError):
            found = "no file"
        if found not in hashes:
            raise damaged(f"{backup.location}/{path}", f"sha256 {hashes[-1]}", found)
