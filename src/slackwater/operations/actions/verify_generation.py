from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from slackwater.checkpoint.damage import find_damage
from slackwater.checkpoint.logs import marks, read_logs
from slackwater.checkpoint.opened import open_checkpoint
from slackwater.core.checkpoint import OffsetEntry
from slackwater.core.commands import command, undo_command
from slackwater.core.errors import Refused
from slackwater.operations.action import Action, ActionFacts
from slackwater.operations.actions.common.base import base_of
from slackwater.operations.actions.common.facts import NOTHING
from slackwater.operations.actions.skip_batch import skipped_in
from slackwater.operations.actions.start_generation import StartGeneration, entry_of
from slackwater.operations.apply.operation import Operation
from slackwater.operations.plan.basis import batches_used
from slackwater.operations.plan.words import plan_again
from slackwater.storage.protocols import ReadStore


@dataclass(frozen=True, slots=True)
class VerifyGeneration(Action):
    """``state``: the newest batch whose state must exist, unless the query keeps none."""

    number: int
    first: int
    last: int
    pending: int | None
    state: int | None
    kind: Literal["verify-generation"] = "verify-generation"

    @property
    def planned(self) -> int:
        return self.last if self.pending is None else self.pending

    def text(self) -> str:
        known = f"those recorded up to batch {self.last}" if self.last >= 0 else "as they should be"
        return f"verify that its marks, ranges and watermarks are {known}"

    def check_continued(self, operation: Operation) -> None:
        """Verifies again, unless the checkpoint was used since."""
        index, state = operation.index_of(self), operation.journal.state
        later = range(index + 1, len(operation.plan.actions))
        # Once a later action has run the query with it, its marks are no longer those of the plan.
        if state(index) != "done" or any(state(one) and operation.plan.actions[one].uses_checkpoint for one in later):
            return
        try:
            self.do(operation)
        except Refused as error:
            error.hint = f"nothing in use was changed; go back: {undo_command(operation.plan.id)}"
            raise

    def do(self, operation: Operation) -> ActionFacts:
        store = operation.store(self.number)
        logs, found = read_logs(store), marks(store)
        state = self.state if found.state is not None else None
        if (found.planned, found.committed) != (self.planned, self.last) or (
            state is not None and found.state != state
        ):
            raise Refused(
                "verify-marks",
                "The new checkpoint does not have the marks that it should have",
                where=store.location,
                expected=f"planned {self.planned}, committed {self.last}, state {self.state}",
                found=f"planned {found.planned}, committed {found.committed}, state {found.state}",
                hint=f"nothing in use was changed; plan again: {plan_again(operation.plan)}",
            )
        _check_files(operation, store)
        _, base = base_of(operation.plan, self.number)
        # The positions of a reset or backfill were chosen: no batch was recorded with them.
        if isinstance(base, StartGeneration):
            if base.last >= 0:
                _check_entry(logs.offset(base.last), entry_of(operation, base), base.last, operation)
            return NOTHING
        for batch in batches_used(self.first, self.last, self.pending):
            if batch in operation.history.offsets:
                _check_entry(logs.offset(batch), operation.batches.offset(batch), batch, operation)
        skipped = skipped_in(operation.plan, self.number)
        if skipped is not None:
            _check_entry(logs.offset(skipped), operation.batches.offset(skipped - 1), skipped, operation)
        return NOTHING


def _check_files(operation: Operation, store: ReadStore) -> None:
    """Checks copies too: a copy of a damaged file is damaged."""
    damage = find_damage(open_checkpoint(store), source_logs=operation.history.source_logs).damage
    if damage:
        raise Refused(
            "verify-damage",
            f"The new checkpoint is damaged: {damage[0].clause}",
            where=store.location,
            expected=damage[0].expected or None,
            found=damage[0].found or None,
            hint="nothing in use was changed; recompute the state: "
            f"{command('plan', 'rebuild', operation.plan.stream)}",
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
