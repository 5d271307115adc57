"""Cuts whole batches from the sink, and restores them. The output itself determines which files these are."""

from __future__ import annotations

from slackwater.apply.actions.facts import NOTHING, ActionFacts
from slackwater.apply.operation import Operation
from slackwater.model.plan import CutSink, RestoreSink
from slackwater.model.sink import Cut


def do(operation: Operation, action: CutSink) -> ActionFacts:
    """Cut; what is taken out is in the operation's backup afterwards."""
    cut = Cut(action.after, action.batches, action.files, action.bytes)
    operation.output.cut(cut, operation.history.written, operation.backup)
    operation.ledger.record_sink_mark(operation.plan.stream, action.after)
    return NOTHING


def restore(operation: Operation, inverse: RestoreSink) -> None:
    """Put the batches back, byte for byte."""
    cut = Cut(inverse.after, inverse.batches, inverse.files, inverse.bytes)
    operation.output.restore(cut, operation.backup)
