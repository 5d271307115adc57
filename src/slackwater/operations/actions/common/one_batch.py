from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from slackwater.checkpoint.layout import offset_path
from slackwater.checkpoint.logs import read_logs
from slackwater.checkpoint.writer import write_log
from slackwater.core.checkpoint import SourceOffset
from slackwater.core.commands import command
from slackwater.core.errors import Refused
from slackwater.core.records import GenerationRecord
from slackwater.formats.text_log import render_offset_entry
from slackwater.operations.action import Action
from slackwater.operations.actions.common.base import base_of, check_same_code
from slackwater.operations.actions.start_generation import StartGeneration, entry_of
from slackwater.operations.apply.operation import Operation
from slackwater.operations.apply.replayer import OperationRun, Replayer
from slackwater.operations.goals.backfill import check_writer, stateful
from slackwater.operations.plan.words import plan_again
from slackwater.storage.protocols import WriteStore

Running = Callable[[Replayer, OperationRun], None]


class OneBatch(Action):
    """``ends``: end offsets by source, as Spark writes them."""

    __slots__ = ()

    number: int
    ends: dict[str, str]

    reads = "range"
    uses_checkpoint = True

    @property
    @abstractmethod
    def ran(self) -> int:
        """The id of the batch."""


def run_once(operation: Operation, action: OneBatch, record: GenerationRecord, run: Running) -> None:
    """Runs the batch; a killed run is continued exactly-once.

    Raises Refused if the code has changed since the first attempt, or Spark ran a different batch.
    """
    store = operation.store(action.number)
    if read_logs(store).committed < action.ran:
        _check_query(operation, action)
        # Before the run: rows of runs and batches refer to their generation by a foreign key.
        operation.ledger.add_generation(record)
        # Without a planned entry Spark would plan a batch of its own, with all that the sources have.
        _plan(operation, action, store)
        recorded = OperationRun(
            record, operation.stream, operation.plan.id, operation.epoch, operation.ledger, operation.home
        )
        run(operation.open_replayer(), recorded)
    found = read_logs(store)
    if (found.planned, found.committed) != (action.ran, action.ran):
        raise Refused(
            "replay-strayed",
            "Spark ran another batch than the one of the backfill",
            where=store.location,
            expected=f"batch {action.ran} planned and committed",
            found=f"batch {found.planned} planned, batch {found.committed} committed",
            hint=_ways_on(operation, action),
        )


def _check_query(operation: Operation, action: OneBatch) -> None:
    """Raises Refused for other code: an output may already hold the batch from the first attempt."""
    replayer = operation.open_replayer()
    if replayer.profile().stateful:
        raise stateful(operation.plan.stream)
    check_writer(operation.stream, replayer, into_directory=not action.changes_in_use)
    check_same_code(operation, action.number, replayer, writes=True)


def _ways_on(operation: Operation, action: OneBatch) -> str:
    if not action.changes_in_use:
        # No stream depends on a backfill directory: what was written to it is removed.
        return f"nothing in use was changed; plan again: {plan_again(operation.plan)}"
    return f"go back: {command('undo', operation.plan.id, '--yes')}"


def _plan(operation: Operation, action: OneBatch, store: WriteStore) -> None:
    _, base = base_of(operation.plan, action.number)
    if isinstance(base, StartGeneration):
        ends = tuple(SourceOffset(start.source, action.ends[start.source]) for start in base.starts)
        entry = entry_of(operation, base)._replace(offsets=ends)
        write_log(store, offset_path(action.ran), render_offset_entry(entry))
