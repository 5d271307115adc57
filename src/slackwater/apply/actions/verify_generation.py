"""Reads the new checkpoint back before it is used."""

from __future__ import annotations

from slackwater.apply.actions.base import base_of
from slackwater.apply.actions.facts import NOTHING, ActionFacts
from slackwater.apply.actions.skip_batch import skipped_in
from slackwater.apply.actions.start_generation import entry_of
from slackwater.apply.operation import Operation
from slackwater.checkpoint.damage import cheap_damage
from slackwater.checkpoint.logs import marks, read_logs
from slackwater.errors import Refused
from slackwater.model.actions import StartGeneration, VerifyGeneration
from slackwater.model.checkpoint_logs import OffsetEntry
from slackwater.plan.basis import batches_used
from slackwater.plan.words import plan_again
from slackwater.storage.local import LocalStore


def do(operation: Operation, action: VerifyGeneration) -> ActionFacts:
    """Raises Refused where a range, a watermark or a mark is not the recorded one."""
    store = LocalStore(operation.checkpoint(action.number))
    logs, found = read_logs(store), marks(store)
    planned = action.last if action.pending is None else action.pending
    state = action.state if found.state is not None else None
    if (found.planned, found.committed) != (planned, action.last) or (state is not None and found.state != state):
        raise Refused(
            "verify-marks",
            "The new checkpoint does not have the marks that it should have",
            where=store.location,
            expected=f"planned {planned}, committed {action.last}, state {action.state}",
            found=f"planned {found.planned}, committed {found.committed}, state {found.state}",
            hint=f"nothing in use was changed; plan again: {plan_again(operation.plan)}",
        )
    _check_files(operation, store)
    _, base = base_of(operation.plan, action.number)
    if isinstance(base, StartGeneration):
        if base.last >= 0:
            _check_entry(logs.offset(base.last), entry_of(operation, base), base.last, operation)
        return NOTHING
    for batch in batches_used(action.first, action.last, action.pending):
        if batch in operation.history.offsets:
            _check_entry(logs.offset(batch), operation.batches.offset(batch), batch, operation)
    skipped = skipped_in(operation.plan, action.number)
    if skipped is not None:
        _check_entry(logs.offset(skipped), operation.batches.offset(skipped - 1), skipped, operation)
    return NOTHING


def _check_files(operation: Operation, store: LocalStore) -> None:
    """What the next start reads must be whole: a copy of a damaged file is damaged."""
    damage = cheap_damage(store)
    if damage:
        raise Refused(
            "verify-damage",
            f"The new checkpoint is damaged: {damage[0].path} is {damage[0].kind}",
            where=store.location,
            expected=damage[0].expected or None,
            found=damage[0].found or None,
            hint=f"nothing in use was changed; recompute the state: slackwater plan rebuild {operation.plan.stream}",
        )


def _check_entry(found: OffsetEntry, recorded: OffsetEntry, batch: int, operation: Operation) -> None:
    if (found.offsets, found.watermark_ms) != (recorded.offsets, recorded.watermark_ms):
        raise Refused(
            "verify-range",
            f"Batch {batch} of the new checkpoint has another range or watermark than the recorded one",
            where=f"stream {operation.plan.stream}",
            expected=f"{recorded.offsets} at {recorded.watermark_ms}",
            found=f"{found.offsets} at {found.watermark_ms}",
            hint=f"nothing in use was changed; plan again: {plan_again(operation.plan)}",
        )
