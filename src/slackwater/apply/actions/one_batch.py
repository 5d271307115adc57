"""Plans one batch in a checkpoint that the operation has built, and runs it: the batch of a backfill."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from slackwater.apply.actions.base import base_of
from slackwater.apply.actions.facts import CODE
from slackwater.apply.actions.start_generation import entry_of
from slackwater.apply.operation import Operation
from slackwater.apply.replayer import OperationRun, Replayer
from slackwater.checkpoint.layout import offset_path
from slackwater.checkpoint.logs import read_logs
from slackwater.checkpoint.writer import write_log
from slackwater.errors import Refused
from slackwater.formats.offset_log import render_offset_entry
from slackwater.model.actions import RunAside, RunBackfill, StartGeneration
from slackwater.model.checkpoint_logs import SourceOffset
from slackwater.model.records import GenerationRecord
from slackwater.plan.backfill import stateful
from slackwater.plan.words import plan_again
from slackwater.storage.local import LocalStore

Running = Callable[[Replayer, OperationRun], None]


def run_once(operation: Operation, action: RunBackfill | RunAside, record: GenerationRecord, run: Running) -> None:
    """Run the batch, unless it is committed. A run that was killed is continued exactly-once.

    Raises Refused where the code is not that of the first attempt, or Spark ran another batch.
    """
    store = LocalStore(operation.checkpoint(action.number))
    if read_logs(store).committed < action.batch:
        _check_query(operation, action)
        operation.ledger.add_generation(record)
        _plan(operation, action, store)
        recorded = OperationRun(
            record, operation.stream, operation.plan.id, operation.epoch, operation.ledger, operation.home
        )
        run(operation.open_replayer(), recorded)
    found = read_logs(store)
    if (found.planned, found.committed) != (action.batch, action.batch):
        raise Refused(
            "replay-strayed",
            "Spark ran another batch than the one of the backfill",
            where=store.location,
            expected=f"batch {action.batch} planned and committed",
            found=f"batch {found.planned} planned, batch {found.committed} committed",
            hint=_ways_on(operation, action),
        )


def _check_query(operation: Operation, action: RunBackfill | RunAside) -> None:
    """The code is that of the first attempt: of several outputs one may have the batch from it."""
    replayer = operation.open_replayer()
    if replayer.profile().stateful:
        raise stateful(operation.plan.stream)
    index, _ = base_of(operation.plan, action.number)
    expected, found = operation.journal.facts(index)[CODE], replayer.code().digest
    if found != expected:
        raise Refused(
            "pipeline-edited",
            "The pipeline file was edited while the backfill was unfinished; its batch could be of two versions",
            where=operation.plan.pipeline_file,
            expected=str(expected)[:12],
            found=found[:12],
            hint=_ways_on(operation, action, "bring the file back, or "),
        )


def _ways_on(operation: Operation, action: RunBackfill | RunAside, first: str = "") -> str:
    if isinstance(action, RunAside):
        # No stream depends on a side output: what was written to it is removed.
        return f"nothing in use was changed; plan again: {plan_again(operation.plan)}"
    return f"{first}go back: slackwater undo {operation.plan.id} --yes"


def _plan(operation: Operation, action: RunBackfill | RunAside, store: LocalStore) -> None:
    _, base = base_of(operation.plan, action.number)
    if isinstance(base, StartGeneration):
        ends = tuple(SourceOffset(start.source, action.ends[start.source]) for start in base.starts)
        entry = replace(entry_of(operation, base), offsets=ends)
        write_log(store, offset_path(action.batch), render_offset_entry(entry))
