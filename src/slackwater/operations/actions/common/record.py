from __future__ import annotations

from collections.abc import Mapping

from slackwater.checkpoint.state.operators import state_stores
from slackwater.core.records import GenerationRecord
from slackwater.operations.action import Action
from slackwater.operations.actions.common.base import Base, base_of
from slackwater.operations.actions.common.facts import LAYOUT, PROGRAMS
from slackwater.operations.actions.common.one_batch import OneBatch
from slackwater.operations.actions.skip_batch import skipped_in
from slackwater.operations.actions.start_generation import StartGeneration
from slackwater.operations.apply.operation import Operation
from slackwater.operations.plan.basis import ends_after
from slackwater.operations.plan.plan import BEFORE_ALL, Plan


def record_of(operation: Operation, number: int) -> GenerationRecord:
    plan = operation.plan
    index, built = base_of(plan, number)
    skipped = skipped_in(plan, number)
    folder = operation.checkpoint(number)
    return GenerationRecord(
        plan.stream,
        number,
        str(folder),
        query_id=built.query_id,
        layout={
            **operation.journal.facts(index).get(LAYOUT, {}),
            "state_stores": state_stores(operation.store(number)),
        },
        based_at=built.last if skipped is None else skipped,
        parent=_parent(plan, skipped),
        source_cut=_inherited(operation, built, skipped),
        begins=_begins(operation, built, skipped),
        programs=_programs(operation, number),
    )


def _programs(operation: Operation, number: int) -> list[Mapping[str, object]]:
    known = next((one for one in operation.ledger.generations(operation.plan.stream) if one.number == number), None)
    if known is not None and known.programs:
        return list(known.programs)
    actions = reversed(list(enumerate(operation.plan.actions)))
    facts = [operation.journal.facts(index) for index, one in actions if _checkpoint_of(one) == number]
    return list(next((one[PROGRAMS] for one in facts if PROGRAMS in one), []))


def _checkpoint_of(action: Action) -> int | None:
    found: int | None = getattr(action, "number", None)
    return found


def _parent(plan: Plan, skipped: int | None) -> int:
    ran = next((one for one in plan.actions if isinstance(one, OneBatch) and one.ran == skipped), None)
    return ran.number if ran is not None else next(one.switch.old for one in plan.actions if one.switch is not None)


def _inherited(operation: Operation, built: Base, skipped: int | None) -> dict[str, int]:
    last = BEFORE_ALL if isinstance(built, StartGeneration) or skipped is not None else built.last
    return ends_after(operation.batches, last)


def _begins(operation: Operation, built: Base, skipped: int | None) -> int | None:
    if built.last < 0:
        return None
    if skipped is not None:
        return skipped + 1
    if isinstance(built, StartGeneration):
        return built.last + 1
    return operation.history.begins or None
