"""Builds new output aside and puts it in the place of the real one. The outputs themselves know how."""

from __future__ import annotations

from slackwater.apply.actions.facts import COMMITTED, NOTHING, PLANNED, ActionFacts
from slackwater.apply.actions.switch_generation import record_of
from slackwater.apply.operation import Operation
from slackwater.apply.replayer import OperationRun
from slackwater.checkpoint.logs import read_logs
from slackwater.errors import Refused
from slackwater.model.actions import RunStaged, StageOutput, SwapBack, SwapOutput
from slackwater.model.sink import Owner
from slackwater.sinks.contract import Swappable
from slackwater.storage.local import LocalStore


def stage(operation: Operation, action: StageOutput) -> ActionFacts:
    """Prepare the staged output and claim it for the stream."""
    output, identifier = _swappable(operation), operation.plan.id
    stream = operation.stream
    owner = Owner(stream.id or "", stream.full_name, str(operation.home.path))
    operation.output.claim(owner)
    output.stage(identifier, action.after, operation.history.written)
    output.staged(identifier).claim(owner)
    return NOTHING


def run_into_it(operation: Operation, action: RunStaged) -> ActionFacts:
    """Run the query into the staged output until it has caught up. A run that was killed is continued exactly-once."""
    folder = operation.checkpoint(action.number)
    generation = record_of(operation, action.number)
    operation.ledger.add_generation(generation)
    run = OperationRun(
        generation, operation.stream, operation.plan.id, operation.epoch, operation.ledger, operation.home
    )
    operation.open_replayer().run_staged(run)
    logs = read_logs(LocalStore(folder))
    return {PLANNED: logs.planned, COMMITTED: logs.committed}


def swap(operation: Operation, action: SwapOutput) -> ActionFacts:
    """Put the staged output in its place."""
    output = _swappable(operation)
    output.swap(action.swap, operation.backup)
    written = operation.output.last_written()
    if written is not None:
        operation.ledger.record_sink_mark(operation.plan.stream, written)
    return NOTHING


def swap_back(operation: Operation, inverse: SwapBack) -> None:
    """Put the output that was replaced back."""
    _swappable(operation).swap_back(inverse.swap, operation.backup)


def discard(operation: Operation) -> None:
    """Remove the staged output."""
    _swappable(operation).discard_staged(operation.plan.id)


def _swappable(operation: Operation) -> Swappable:
    if not isinstance(operation.output, Swappable):
        raise Refused(
            "swap-unsupported",
            "This output cannot be built aside and swapped",
            where=operation.output.location,
            hint="plan again with another --output",
        )
    return operation.output
