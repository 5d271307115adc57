"""Makes another generation the one in use: the ledger first, then ``stream.json``; both can be repeated."""

from __future__ import annotations

from slackwater.apply.actions.base import base_of
from slackwater.apply.actions.facts import COMMITTED, LAYOUT, NOTHING, PLANNED, ActionFacts
from slackwater.apply.operation import Operation
from slackwater.checkpoint.logs import read_logs
from slackwater.checkpoint.state.stores import state_stores
from slackwater.errors import Refused
from slackwater.model.plan import Base, RunStaged, StartGeneration, SwitchGeneration
from slackwater.model.records import GenerationRecord
from slackwater.plan.basis import BEFORE_ALL, ends_after
from slackwater.plan.words import at_batch
from slackwater.recording.log_copier import copy_new
from slackwater.recording.stream_files import write_stream_file_of
from slackwater.storage.local import LocalStore


def do(operation: Operation, action: SwitchGeneration) -> ActionFacts:
    """Record the new generation with what it inherits, then make it the one in use."""
    ledger, record = operation.ledger, record_of(operation, action.new)
    ledger.add_generation(record)
    copy_new(ledger, record.stream, record.number, LocalStore(record.location))
    _use(operation, action.new)
    return NOTHING


def record_of(operation: Operation, number: int) -> GenerationRecord:
    """The generation that the operation has built, for the ledger."""
    plan = operation.plan
    index, built = base_of(plan)
    folder = operation.checkpoint(number)
    return GenerationRecord(
        plan.stream,
        number,
        str(folder),
        query_id=built.query_id,
        layout={**operation.journal.facts(index).get(LAYOUT, {}), "state_stores": state_stores(LocalStore(folder))},
        based_at=built.last,
        parent=next(one.old for one in plan.actions if isinstance(one, SwitchGeneration)),
        source_cut=_inherited(operation, built),
        begins=_begins(operation, built),
    )


def _inherited(operation: Operation, built: Base) -> dict[str, int]:
    """The newest entry of each source's own log that the new generation has in common with the old one."""
    last = BEFORE_ALL if isinstance(built, StartGeneration) else built.last
    return ends_after(operation.batches, last)


def _begins(operation: Operation, built: Base) -> int | None:
    """The first batch since a reset; any other operation leaves it, unless it starts before all batches."""
    if built.last < 0:
        return None
    if isinstance(built, StartGeneration):
        return built.last + 1
    return operation.history.begins or None


def back(operation: Operation, inverse: SwitchGeneration) -> None:
    """Make the old generation the one in use again."""
    _use(operation, inverse.new)


def check_unused(operation: Operation) -> None:
    """Raises Refused where the generation that was switched in is not in use, or has run batches since."""
    plan = operation.plan
    index, switch = next((i, one) for i, one in enumerate(plan.actions) if isinstance(one, SwitchGeneration))
    if operation.journal.state(index) != "done":
        return
    current = operation.ledger.find_stream(plan.stream).current_generation
    if current != switch.new:
        raise Refused(
            "undo-superseded",
            f"Generation {switch.new}, which the operation switched to, is no longer in use",
            where=f"stream {plan.stream}",
            expected=f"generation {switch.new} in use",
            found=f"generation {current} in use",
            hint=f"undo the newer operation first: slackwater undo {_newest_applied(operation)} --yes",
        )
    _, built = base_of(plan)
    found = read_logs(LocalStore(operation.checkpoint(switch.new)))
    planned, committed = _left_at(operation, built)
    if found.committed > committed or found.planned > planned:
        raise Refused(
            "undo-late",
            "The stream has run since the operation was applied: undo would leave its sink ahead of its checkpoint",
            where=f"stream {plan.stream}",
            expected=f"batch {committed} as the newest committed",
            found=f"batch {found.committed} committed, batch {found.planned} planned",
            hint="to go back to an older batch: "
            f"slackwater plan rebuild {plan.stream} --at {at_batch(plan.facts.target)}",
        )


def _left_at(operation: Operation, built: Base) -> tuple[int, int]:
    """The newest planned and committed batch when the generation was switched in."""
    for index, action in enumerate(operation.plan.actions):
        if isinstance(action, RunStaged):
            facts = operation.journal.facts(index)
            return facts[PLANNED], facts[COMMITTED]
    return built.last if built.pending is None else built.pending, built.last


def _newest_applied(operation: Operation) -> str:
    """The operation that switched in the generation in use: the newest that was applied."""
    applied = [one for one in operation.ledger.operations(operation.plan.stream) if one.status == "applied"]
    return max(applied, key=lambda one: one.started_ms).id


def _use(operation: Operation, number: int) -> None:
    operation.ledger.set_current_generation(operation.plan.stream, number)
    write_stream_file_of(operation.home, operation.ledger, operation.plan.stream)
