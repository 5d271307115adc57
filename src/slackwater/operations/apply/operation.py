"""An operation on a stream, its backup with the hashes of its records in the journal, and the runtime that it uses."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from itertools import chain
from typing import NamedTuple, Protocol

from slackwater.core.program import Program, QueryProfile
from slackwater.core.records import GenerationRecord, History, StreamRecord
from slackwater.core.sink import BackfillDirectory, Cut
from slackwater.ledger.home import Home
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.recording.batch_history import BatchHistory
from slackwater.ledger.workspace import Workspace
from slackwater.operations.action import Action, ActionFacts, Display, Inverse, PreconditionName
from slackwater.operations.apply.adopted import CheckpointPlaces, places_of
from slackwater.operations.apply.journal import Journal, State
from slackwater.operations.plan.contributing import Code
from slackwater.operations.plan.plan import Plan
from slackwater.operations.plan.targets import WantedPosition
from slackwater.sinks.common.changes import damaged
from slackwater.sinks.common.contract import Output
from slackwater.sources.common.contract import Position, Served, SourceRange
from slackwater.storage.below import Below
from slackwater.storage.open import Location, open_write_store
from slackwater.storage.protocols import WriteStore

BACKUP = "backup"
PLAN_FILE = "plan.json"


BACKUP_FACT = "backup"
"""The last record counts, but a kill may have left the record before it."""


class Operation(NamedTuple):
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

    def state_of(self, step: Action | Inverse) -> State | None:
        return self.journal.state(self.index_of(step))

    def facts_of(self, step: Action | Inverse) -> ActionFacts:
        return self.journal.facts(self.index_of(step))

    def add_facts(self, action: Action, facts: ActionFacts) -> None:
        known = {**self.facts_of(action), **facts}
        self.journal.write(self.index_of(action), action.kind, "started", self.ledger.now_ms(), known)

    def store(self, number: int) -> WriteStore:
        return open_write_store(self.checkpoint(number))

    def checkpoint(self, number: int) -> Location:
        return self.places.checkpoint(number)


class WitnessedBackup(Below):
    def __init__(self, operation: Operation, action: Action) -> None:
        super().__init__(operation.files, BACKUP)
        self._operation = operation
        self._action = action

    def write(self, path: str, data: bytes) -> None:
        """Copies of files, hashed in records, come in pieces."""
        hashes = hashes_of(self._operation, self._action)
        known = hashes.get(path, [])
        if not known:
            self.write_pieces(path, (data,))
        hashes = {**hashes, path: [*known, hashlib.sha256(data).hexdigest()]}
        self._operation.add_facts(self._action, {BACKUP_FACT: hashes})
        if known:
            # It is replaced: until it is durable, the one before counts.
            self.write_pieces(path, (data,))


def hashes_of(operation: Operation, step: Action | Inverse) -> Mapping[str, list[str]]:
    found: Mapping[str, list[str]] = operation.facts_of(step).get(BACKUP_FACT, {})
    return found


def backup_for(operation: Operation, action: Action) -> WriteStore:
    """Raises Refused (``backup-damaged``) if it was changed. Leftovers without a journaled hash are written again."""
    if changed_nothing(operation, action):
        backup = operation.backup
        for folder in list(backup.folders()):
            for name in folder.files:
                backup.delete(f"{folder.path}/{name}".lstrip("/"))
    check_records(operation, action)
    return WitnessedBackup(operation, action)


def changed_nothing(operation: Operation, step: Action | Inverse) -> bool:
    return operation.is_recorded and not hashes_of(operation, step)


def check_started(operation: Operation, action: Action) -> None:
    """Raises Refused (``backup-damaged``) if a record has changed."""
    if operation.state_of(action) == "started":
        check_records(operation, action)


def check_records(operation: Operation, step: Action | Inverse) -> None:
    backup = operation.backup
    for path, hashes in hashes_of(operation, step).items():
        try:
            found = hashlib.sha256(backup.read(path)).hexdigest()
        except (OSError, ValueError):
            found = "no file"
        if found not in hashes:
            raise damaged(f"{backup.location}/{path}", f"sha256 {hashes[-1]}", found)


class Replayer(Protocol):
    @property
    def sink_written(self) -> Mapping[str, str] | None:
        """``None`` for a pipeline file, which has no writer."""

    def writes_to(self, sink: Mapping[str, str]) -> bool:
        """Whether a program starts the query with this output."""

    @property
    def output_mode(self) -> str:
        """The output mode of the present query."""

    def profile(self) -> QueryProfile:
        """The state of the present query, from its plan."""

    def code(self) -> Code:
        """The loaded pipeline file, and which rows its query reads."""

    def program(self, settings: Mapping[str, str] | None = None) -> Mapping[str, object] | None:
        """The present query's program; ``None`` if it cannot be read."""

    def compact_interval(self) -> int:
        """The session's setting, by which Spark reads shorter file source logs."""

    def served_positions(self) -> Mapping[str, Served]:
        """The positions that sources serve now, by place in the query."""

    def rows_served(self, span: SourceRange, was: Mapping[str, str]) -> int | None:
        """The rows that the source serves now in a range; ``None``: unknown. ``was``: options of the recorded read.
        Raises EnvironmentMissing if the source does not answer.
        """

    def positions(self, wanted: WantedPosition) -> Mapping[str, Position]:
        """The positions by place in the query. Raises UsageError (``target``), and Refused for positions that a source
        has lost.
        """

    def run_pending(
        self,
        checkpoint: str,
        *,
        changelog: bool,
        settings: Mapping[str, str] | None = None,
        more: bool = False,
        again: bool = False,
    ) -> tuple[int, int]:
        """Run the batch that is planned and not committed: its id and its number of rows.

        ``changelog`` False turns RocksDB's changelog files off. ``settings`` ``None``: the session's. ``more``: the
        next call is for the following batch with the same settings. ``again``: the last call ran the same batch, whose
        commit was removed. Raises StreamFailed.
        """

    def run_staged(self, operation: Operation, generation: GenerationRecord) -> None:
        """Raises StreamFailed."""

    def run_backfill(self, operation: Operation, generation: GenerationRecord) -> None:
        """Run the planned batch into the output. Raises StreamFailed."""

    def run_into_directory(self, operation: Operation, generation: GenerationRecord, output: BackfillDirectory) -> None:
        """Run the backfill into a directory."""


class QueryRuntime(Protocol):
    """The runtime. ``reference`` is a path or a module name; the file is not run."""

    def digest(self, reference: str) -> str:
        """SHA-256 of the file and the project's imported modules. Raises PipelineError."""

    def environment_read(self, reference: str) -> tuple[str, ...]:
        """Sorted names of the environment variables that the file reads."""

    def environment_changes(self, workspace: Workspace, stream: str, kept: Program, /) -> tuple[str, ...]:
        """Changes that a replay would make for Python functions, in words."""

    def require_spark(self) -> None:
        """Raises EnvironmentMissing if Spark or Java is missing. Starts nothing."""

    def open_replayer(
        self,
        workspace: Workspace,
        stream: StreamRecord,
        reference: str,
        on_jvm: Callable[[int], None],
        /,
        *,
        brief: bool = True,
    ) -> AbstractContextManager[Replayer]:
        """Spark starts on first use, and ``on_jvm`` gets its pid.

        ``brief``: starting Spark takes longer than its work. Runs the pipeline file's code: raises PipelineError if it
        fails.
        """
