"""Runs the batch of a backfill into the output of the stream, and takes it out again.

The batch has the next id of the stream, so that a sink that is keyed by batch ids writes it once, however often it is
run. Which files or rows it writes is not known before: undo asks the output then, and keeps the answer until all of it
is taken out.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace

from slackwater.apply.actions.base import base_of
from slackwater.apply.actions.facts import CODE, NOTHING, ActionFacts
from slackwater.apply.actions.start_generation import entry_of
from slackwater.apply.actions.switch_generation import record_of
from slackwater.apply.operation import BACKUP, PLAN_FILE, Operation
from slackwater.apply.replayer import OperationRun
from slackwater.checkpoint.layout import offset_path
from slackwater.checkpoint.logs import read_logs
from slackwater.checkpoint.writer import write_log
from slackwater.errors import Refused
from slackwater.formats.offset_log import render_offset_entry
from slackwater.ledger.lineage import SINK
from slackwater.model.checkpoint_logs import SourceOffset
from slackwater.model.plan import CutBackfill, RunBackfill, StartGeneration, SwitchGeneration
from slackwater.model.sink import Cut
from slackwater.plan.backfill import stateful
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
    store = LocalStore(operation.checkpoint(action.number))
    if read_logs(store).committed < action.batch:
        _check_query(operation, action)
        generation = record_of(operation, action.number)
        operation.ledger.add_generation(generation)
        _plan(operation, action, store)
        operation.open_replayer().run_backfill(
            OperationRun(
                generation, operation.stream, operation.plan.id, operation.epoch, operation.ledger, operation.home
            )
        )
    found = read_logs(store)
    if (found.planned, found.committed) != (action.batch, action.batch):
        raise Refused(
            "replay-strayed",
            "Spark ran another batch than the one of the backfill",
            where=store.location,
            expected=f"batch {action.batch} planned and committed",
            found=f"batch {found.planned} planned, batch {found.committed} committed",
            hint=f"go back: slackwater undo {operation.plan.id} --yes",
        )
    # The run does so, too, unless it was killed behind the commit.
    copy_new(operation.ledger, operation.plan.stream, action.number, store, operation.output)
    written = operation.output.last_written()
    if written is not None:
        operation.ledger.record_sink_mark(operation.plan.stream, written)
    return NOTHING


def _check_query(operation: Operation, action: RunBackfill) -> None:
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
            hint=f"bring the file back, or go back: slackwater undo {operation.plan.id} --yes",
        )


def _plan(operation: Operation, action: RunBackfill, store: LocalStore) -> None:
    _, base = base_of(operation.plan, action.number)
    if isinstance(base, StartGeneration):
        ends = tuple(SourceOffset(start.source, action.ends[start.source]) for start in base.starts)
        entry = replace(entry_of(operation, base), offsets=ends)
        write_log(store, offset_path(action.batch), render_offset_entry(entry))


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
