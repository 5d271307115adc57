"""Makes another generation the one in use: the ledger first, then ``stream.json``; both can be repeated."""

from __future__ import annotations

from slackwater.apply.actions.base import base_of
from slackwater.apply.actions.facts import BY_HAND, COMMITTED, LAYOUT, NOTHING, PLANNED, ActionFacts
from slackwater.apply.actions.skip_batch import skipped_in
from slackwater.apply.adopted import AdoptedCheckpoint
from slackwater.apply.operation import PLAN_FILE, Operation
from slackwater.checkpoint.logs import read_logs
from slackwater.checkpoint.state.stores import state_stores
from slackwater.diagnose.words import undo_command
from slackwater.errors import Refused, SlackwaterError
from slackwater.model.actions import Base, RunBackfill, RunStaged, StartGeneration, SwitchGeneration
from slackwater.model.plan import Plan
from slackwater.model.records import GenerationRecord
from slackwater.plan.basis import BEFORE_ALL, ends_after
from slackwater.plan.document import parse
from slackwater.plan.words import at_batch
from slackwater.recording.log_copier import copy_new
from slackwater.recording.stream_files import write_stream_file_of
from slackwater.storage.local import LocalStore


def do(operation: Operation, action: SwitchGeneration) -> ActionFacts:
    """Record the new generation with what it inherits, then make it the one in use."""
    ledger, adopted = operation.ledger, operation.adopted
    if adopted is not None:
        _put_in_place(operation, adopted)
        record = record_of(operation, action.new)
        adopted.record_in_place(record)
    else:
        record = record_of(operation, action.new)
        ledger.add_generation(record)
    copy_new(ledger, record.stream, record.number, LocalStore(operation.checkpoint(action.new)))
    _use(operation, action.new)
    return NOTHING


def _put_in_place(operation: Operation, adopted: AdoptedCheckpoint) -> None:
    """Put the new checkpoint at the path that the user's code names; the journal has how to do that by hand."""
    index, by_hand = operation.plan.actions.index(adopted.switch), list(adopted.by_hand)
    operation.journal.write(index, adopted.switch.kind, "started", operation.ledger.now_ms(), {BY_HAND: by_hand})
    adopted.put_in_place()


def record_of(operation: Operation, number: int) -> GenerationRecord:
    """The generation that the operation has built, for the ledger."""
    plan = operation.plan
    index, built = base_of(plan, number)
    skipped = skipped_in(plan, number)
    folder = operation.checkpoint(number)
    return GenerationRecord(
        plan.stream,
        number,
        str(folder),
        query_id=built.query_id,
        layout={**operation.journal.facts(index).get(LAYOUT, {}), "state_stores": state_stores(LocalStore(folder))},
        based_at=built.last if skipped is None else skipped,
        parent=_parent(plan, skipped),
        source_cut=_inherited(operation, built, skipped),
        begins=_begins(operation, built, skipped),
    )


def _parent(plan: Plan, skipped: int | None) -> int:
    """The generation whose batches are the past of the new one; of a batch that was skipped, the one that ran it."""
    ran = next((one for one in plan.actions if isinstance(one, RunBackfill) and one.batch == skipped), None)
    return _switch_of(plan)[1].old if ran is None else ran.number


def _inherited(operation: Operation, built: Base, skipped: int | None) -> dict[str, int]:
    """The newest entry of each source's own log that the new generation has in common with its parent."""
    last = BEFORE_ALL if isinstance(built, StartGeneration) or skipped is not None else built.last
    return ends_after(operation.batches, last)


def _begins(operation: Operation, built: Base, skipped: int | None) -> int | None:
    """The first batch since a reset or backfill; any other operation leaves it, unless it starts before all batches."""
    if built.last < 0:
        return None
    if skipped is not None:
        return skipped + 1
    if isinstance(built, StartGeneration):
        return built.last + 1
    return operation.history.begins or None


def switches(plan: Plan) -> bool:
    """Whether the plan makes another generation the one in use."""
    return any(isinstance(one, SwitchGeneration) for one in plan.actions)


def _switch_of(plan: Plan) -> tuple[int, SwitchGeneration]:
    return next((index, one) for index, one in enumerate(plan.actions) if isinstance(one, SwitchGeneration))


def back(operation: Operation, inverse: SwitchGeneration) -> None:
    """Make the old generation the one in use again."""
    adopted = operation.adopted
    if adopted is not None:
        adopted.put_back()
        adopted.record_back()
    _use(operation, inverse.new)


def check_unused(operation: Operation) -> None:
    """Raises Refused where the generation that was switched in is not in use, or has run batches since."""
    plan = operation.plan
    if not switches(plan):
        return
    index, switch = _switch_of(plan)
    state, adopted = operation.journal.state(index), operation.adopted
    # Its own program could start the query as soon as the new checkpoint was in place.
    exchanged = state == "started" and adopted is not None and adopted.is_new_in_place
    if state != "done" and not exchanged:
        return
    current = operation.ledger.find_stream(plan.stream).current_generation
    if current != switch.new and not exchanged:
        raise Refused(
            "undo-superseded",
            f"Generation {switch.new}, which the operation switched to, is no longer in use",
            where=f"stream {plan.stream}",
            expected=f"generation {switch.new} in use",
            found=f"generation {current} in use",
            hint=f"undo the newer operation first: {undo_command(_newest_applied(operation))}",
        )
    _, built = base_of(plan, switch.new)
    found = read_logs(LocalStore(operation.checkpoint(switch.new)) if adopted is None else adopted.store_of_new())
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
    skipped = skipped_in(operation.plan, built.number)
    if skipped is not None:
        return skipped, skipped
    return built.last if built.pending is None else built.pending, built.last


def _newest_applied(operation: Operation) -> str:
    """The operation that switched in the generation in use: the newest that was applied and has switched."""
    records = operation.ledger.operations(operation.plan.stream)
    applied = sorted((one for one in records if one.status == "applied"), key=lambda one: one.started_ms)
    return next((one.id for one in reversed(applied) if _has_switched(operation, one.id)), applied[-1].id)


def _has_switched(operation: Operation, identifier: str) -> bool:
    folder = operation.folder.with_name(identifier)
    try:
        return switches(parse((folder / PLAN_FILE).read_text(), folder / PLAN_FILE))
    except (OSError, SlackwaterError):
        # Only a hint depends on it.
        return True


def _use(operation: Operation, number: int) -> None:
    operation.ledger.set_current_generation(operation.plan.stream, number)
    write_stream_file_of(operation.home, operation.ledger, operation.plan.stream)
