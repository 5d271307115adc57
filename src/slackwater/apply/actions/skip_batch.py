"""Leaves the id of a batch out in the new checkpoint: another checkpoint runs the batch."""

from __future__ import annotations

from slackwater.apply.actions.facts import NOTHING, ActionFacts
from slackwater.apply.operation import Operation
from slackwater.checkpoint.layout import commit_path, offset_path
from slackwater.checkpoint.writer import write_log
from slackwater.model.actions import SkipBatch
from slackwater.model.plan import Plan
from slackwater.storage.local import LocalStore


def do(operation: Operation, action: SkipBatch) -> ActionFacts:
    """Write the entries of the batch before it once more, under its id: Spark continues after it, where that ended."""
    store, before = LocalStore(operation.checkpoint(action.number)), action.batch - 1
    write_log(store, offset_path(action.batch), store.read(offset_path(before)))
    write_log(store, commit_path(action.batch), store.read(commit_path(before)))
    return NOTHING


def skipped_in(plan: Plan, number: int) -> int | None:
    """The batch that a generation leaves out, ``None`` for none."""
    return next((one.batch for one in plan.actions if isinstance(one, SkipBatch) and one.number == number), None)
