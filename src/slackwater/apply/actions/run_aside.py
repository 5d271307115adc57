"""Runs the batch of a backfill into a side output, and removes it again. Nothing of the stream is changed.

The directory belongs to the operation from its first file on, so that undo knows what it may remove.
"""

from __future__ import annotations

from dataclasses import replace

from slackwater.apply.actions.base import base_of
from slackwater.apply.actions.facts import LAYOUT, NOTHING, ActionFacts
from slackwater.apply.actions.one_batch import run_once
from slackwater.apply.operation import Operation
from slackwater.errors import Refused
from slackwater.model.actions import DiscardAside, RunAside
from slackwater.model.records import GenerationRecord
from slackwater.plan.basis import BEFORE_ALL
from slackwater.recording.history import readers_of
from slackwater.recording.log_copier import copy_new
from slackwater.sinks import side_output
from slackwater.storage.local import LocalStore


def do(operation: Operation, action: RunAside) -> ActionFacts:
    """Claim the directory, then run the batch. A run that was killed is continued exactly-once."""
    plan, output = operation.plan, action.output
    side_output.claim(output, plan.id, plan.stream, str(operation.home.path))
    record = _record(operation, action.number)
    run_once(operation, action, record, lambda replayer, run: replayer.run_aside(run, output))
    copy_new(operation.ledger, plan.stream, action.number, LocalStore(operation.checkpoint(action.number)))
    return NOTHING


def _record(operation: Operation, number: int) -> GenerationRecord:
    """The checkpoint, for the ledger: it inherits nothing, and no other one inherits from it."""
    index, built = base_of(operation.plan, number)
    folder, layout = str(operation.checkpoint(number)), operation.journal.facts(index).get(LAYOUT)
    return GenerationRecord(operation.plan.stream, number, folder, query_id=built.query_id, layout=layout)


def discard(operation: Operation, inverse: DiscardAside) -> None:
    """Remove what the operation wrote to the directory."""
    side_output.discard(inverse.output, operation.plan.id)


def check_unread(operation: Operation) -> None:
    """Raises Refused where other streams have read the side output: they would keep rows that are nowhere else."""
    for index, action in enumerate(operation.plan.actions):
        if not isinstance(action, RunAside) or operation.journal.state(index) in {None, "undoing"}:
            continue
        output = side_output.open_side_output(action.output)
        if output.owner() is None:
            continue
        written = replace(operation.stream, sink=side_output.identity(action.output))
        readers = readers_of(operation.ledger, written, output.cut_after(BEFORE_ALL, {}))
        if readers:
            raise Refused(
                "side-output-was-read",
                "The rows of the side output would be removed, but other streams have read them",
                where=output.location,
                found=", ".join(readers),
                hint="the side output can stay: the stream does not depend on it",
            )
