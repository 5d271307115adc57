"""Cuts whole batches from the sink, and restores them. The output itself determines which files these are."""

from __future__ import annotations

from slackwater.apply.actions.facts import NOTHING, ActionFacts
from slackwater.apply.operation import Operation
from slackwater.model.actions import CutSink, RestoreSink


def do(operation: Operation, action: CutSink) -> ActionFacts:
    """Cut; what is taken out is in the operation's backup afterwards."""
    operation.output.cut(action.cut, operation.history.written, operation.backup)
    operation.ledger.record_sink_mark(operation.plan.stream, action.cut.after)
    return NOTHING


def restore(operation: Operation, inverse: RestoreSink) -> None:
    """Put the batches back, as they were."""
    operation.output.restore(inverse.cut, operation.backup)
