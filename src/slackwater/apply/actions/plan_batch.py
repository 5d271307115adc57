"""Plans the batch behind the replayed ones in the new checkpoint, with the range that it was recorded with."""

from __future__ import annotations

from slackwater.apply.actions.facts import NOTHING, ActionFacts
from slackwater.apply.operation import Operation
from slackwater.checkpoint.layout import offset_path
from slackwater.checkpoint.writer import write_log
from slackwater.model.actions import PlanBatch
from slackwater.storage.local import LocalStore


def do(operation: Operation, action: PlanBatch) -> ActionFacts:
    """Write its entry into ``offsets/``; Spark runs it first when the query starts."""
    entry = operation.history.offsets[action.batch].encode("utf-8", "surrogateescape")
    write_log(LocalStore(operation.checkpoint(action.number)), offset_path(action.batch), entry)
    return NOTHING
