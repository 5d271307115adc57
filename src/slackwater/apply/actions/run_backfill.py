"""Runs the batch of a backfill into the output of the stream, and takes it out again.

The batch has the next id of the stream, so that a sink that is keyed by batch ids writes it once, however often it is
run. Which files or rows it writes is not known before: undo asks the output then, and keeps the answer until all of it
is taken out.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from slackwater.apply.actions.facts import NOTHING, ActionFacts
from slackwater.apply.actions.one_batch import run_once
from slackwater.apply.actions.switch_generation import record_of
from slackwater.apply.operation import BACKUP, PLAN_FILE, Operation
from slackwater.errors import Refused
from slackwater.ledger.lineage import SINK
from slackwater.model.actions import CutBackfill, RunBackfill, SwitchGeneration
from slackwater.model.sink import Cut
from slackwater.recording.history import readers_of
from slackwater.recording.log_copier import copy_new
from slackwater.sinks.backup import RecordFile
from slackwater.sinks.registry import open_each
from slackwater.storage.local import LocalStore


@dataclass(frozen=True, slots=True)
class _TakenOut:
    """What an undo takes out, and the folder of the operation's backup that keeps it."""

    backup: str
    cut: Cut


RECORD = RecordFile("backfill-cut.json", "slackwater.backfill-cut/1", _TakenOut)


def do(operation: Operation, action: RunBackfill) -> ActionFacts:
    """Plan the batch and run it, unless it is committed. A run that was killed is continued exactly-once."""
    run_once(operation, action, record_of(operation, action.number), lambda replayer, run: replayer.run_backfill(run))
    # The run does so, too, unless it was killed behind the commit.
    store = LocalStore(operation.checkpoint(action.number))
    copy_new(operation.ledger, operation.plan.stream, action.number, store, operation.output)
    written = operation.output.last_written()
    if written is not None:
        operation.ledger.record_sink_mark(operation.plan.stream, written)
    return NOTHING


def take_out(operation: Operation, inverse: CutBackfill) -> None:
    """Cut the batch from the sink, if it has it. Can be repeated after a kill."""
    folder = LocalStore(operation.folder, private=True)
    taken = RECORD.read(folder)
    if taken is None and _newest(operation) > inverse.after and operation.output.traits.cuts:
        backups = operation.folder / BACKUP
        number = sum(1 for _ in backups.glob("backfill-*")) + 1
        cut = operation.output.cut_after(inverse.after, operation.history.written)
        taken = _TakenOut(f"backfill-{number}", cut)
        RECORD.write(folder, taken)
    if taken is not None:
        backup = LocalStore(operation.folder / BACKUP / taken.backup, private=True)
        operation.output.cut(taken.cut, operation.history.written, backup)
        operation.ledger.record_sink_mark(operation.plan.stream, inverse.after)
    # The id is used for other data now: what the sink wrote under it is not the past of the generation in use.
    operation.ledger.remove_lines(operation.plan.stream, _generation_in_use(operation), SINK, after=inverse.after)
    folder.delete(RECORD.name)


def check_removable(operation: Operation) -> None:
    """Raises Refused where the batch was written and cannot be taken out, or other streams have read it."""
    index, run = next(
        ((index, one) for index, one in enumerate(operation.plan.actions) if isinstance(one, RunBackfill)), (-1, None)
    )
    if run is None or operation.journal.state(index) in {None, "undoing"}:
        return
    after, output = run.batch - 1, operation.output
    if output.traits.cuts:
        cut = output.cut_after(after, operation.history.written)
        _check_unread(operation, readers_of(operation.ledger, operation.stream, cut))
    elif _may_skip(operation, after):
        raise Refused(
            "backfill-kept",
            f"The sink cannot remove what batch {run.batch} wrote, and would skip the next batch with this id",
            where=output.location,
            expected=f"a sink without batch {run.batch}",
            hint=_instead(operation),
        )


def _may_skip(operation: Operation, after: int) -> bool:
    """Whether one of the outputs has, or may have, the batch, and would leave out another one of its id."""
    for output in open_each(operation.stream.sink):
        written = output.last_written()
        if output.traits.skips_known_batches and (written is None or written > after):
            return True
    return False


def _check_unread(operation: Operation, readers: list[str]) -> None:
    if readers:
        raise Refused(
            "cut-was-read",
            "The batch of the backfill would have to be taken out of the sink, but other streams have read it",
            where=operation.output.location,
            found=", ".join(readers),
            hint=_instead(operation),
        )


def _instead(operation: Operation) -> str:
    switched = next(i for i, one in enumerate(operation.plan.actions) if isinstance(one, SwitchGeneration))
    if operation.journal.state(switched) == "done":
        return f"the stream can continue with it: slackwater run {shlex.quote(operation.plan.pipeline_file)}"
    return f"finish it: slackwater apply {shlex.quote(str(operation.folder / PLAN_FILE))} --yes"


def _newest(operation: Operation) -> int:
    shown = (one.last_written() for one in open_each(operation.stream.sink))
    return max((written for written in shown if written is not None), default=-1)


def _generation_in_use(operation: Operation) -> int:
    return operation.ledger.find_stream(operation.plan.stream).current_generation
