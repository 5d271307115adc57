"""A new generation is verified, and put in use: the ledger first, then ``stream.json``; both can be repeated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from slackwater.checkpoint.damage import find_damage
from slackwater.checkpoint.logs import marks, read_logs
from slackwater.checkpoint.opened import open_checkpoint
from slackwater.core.checkpoint import OffsetEntry
from slackwater.core.commands import command, undo_command
from slackwater.core.errors import Refused, SlackwaterError
from slackwater.ledger.recording.log_copier import copy_new
from slackwater.ledger.recording.stream_files import write_stream_file_of
from slackwater.operations.action import BY_HAND, COMMITTED, KEPT, NOTHING, PLANNED, Action, ActionFacts, Inverse
from slackwater.operations.actions.batches import record_of, skipped_in
from slackwater.operations.actions.generations import StartGeneration, base_of, entry_of
from slackwater.operations.apply.operation import PLAN_FILE, Operation
from slackwater.operations.plan.context import batches_used
from slackwater.operations.plan.document import at_batch, parse, plan_again
from slackwater.storage.open import open_read_store
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
                "The batch marks of the new checkpoint are wrong",
                where=store.location,
                expected=f"planned {self.planned}, committed {self.last}, state {self.state}",
                found=f"planned {found.planned}, committed {found.committed}, state {found.state}",
                hint=f"nothing in use was changed; plan again: {plan_again(operation.plan)}",
            )
        # Copies too: a copy of a damaged file is damaged.
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


def _check_entry(found: OffsetEntry, recorded: OffsetEntry, batch: int, operation: Operation) -> None:
    if (found.offsets, found.watermark_ms) != (recorded.offsets, recorded.watermark_ms):
        raise Refused(
            "verify-range",
            f"Batch {batch} of the new checkpoint has a different range or watermark than recorded",
            where=f"stream {operation.plan.stream}",
            expected=f"{recorded.offsets} at {recorded.watermark_ms}",
            found=f"{found.offsets} at {found.watermark_ms}",
            hint=f"nothing in use was changed; plan again: {plan_again(operation.plan)}",
        )


@dataclass(frozen=True, slots=True)
class SwitchGeneration(Action, Inverse):
    """Puts the new checkpoint in use; the old checkpoint stays."""

    old: int
    new: int
    kind: Literal["switch-generation"] = "switch-generation"

    needs = ("generation",)
    changes_in_use = uses_checkpoint = True

    @property
    def switch(self) -> SwitchGeneration:
        return self

    def text(self) -> str:
        if self.new < self.old:
            # Numbers only grow: this is the inverse, after which the operation's own generation is removed.
            return f"switch back from generation {self.old} to {self.new}"
        return f"switch from generation {self.old} to {self.new} ({self.old} is kept)"

    def inverse(self) -> SwitchGeneration:
        return SwitchGeneration(self.new, self.old)

    def do(self, operation: Operation) -> ActionFacts:
        places = operation.places
        # By the first attempt only: a later one could record a checkpoint that was changed meanwhile.
        if KEPT not in operation.facts_of(self):
            location = operation.ledger.generation(operation.plan.stream, self.old).location
            operation.add_facts(self, {KEPT: _seen_in(open_read_store(location))})
        if places.by_hand:
            # The journal has how to do by hand what a failure of the machine leaves halfway.
            operation.add_facts(self, {BY_HAND: list(places.by_hand)})
        # The exchange first: until the ledger has recorded it, a mark shows which checkpoint is where.
        places.swap_in()
        record = record_of(operation, self.new)
        places.record_in_place(record)
        copy_new(operation.ledger, record.stream, record.number, operation.store(self.new))
        # For a stream of a pipeline this is the switch: until here a kill leaves the old generation in use.
        _use(operation, self.new)
        return NOTHING

    def check_continued(self, operation: Operation) -> None:
        expected = operation.facts_of(self).get(KEPT)
        if expected is None or not operation.places.is_old_in_place:
            return
        # Its program can start the query at any time before the exchange, and the sink would have its batches.
        # In its place, and not the copy that the switch makes on an object store: that may be incomplete.
        _check_seen(
            open_read_store(operation.ledger.generation(operation.plan.stream, self.old).location),
            expected,
            f"The checkpoint of generation {self.old}, which the operation is about to replace, was changed since "
            "the operation was interrupted; it was not replaced",
            f"stop the query, go back: {undo_command(operation.plan.id)}; then make a new plan",
        )

    def check(self, operation: Operation) -> None:
        """The previous checkpoint must be unchanged since the switch."""
        expected, places = operation.facts_of(self).get(KEPT), operation.places
        if expected is None or places.is_old_in_place:
            # A checkpoint at the path is not compared: its program may have run since.
            return
        _check_seen(
            places.store_of_old(),
            expected,
            f"The checkpoint of generation {self.new}, to switch back to, was deleted or changed since the "
            "operation was applied; nothing was changed",
            "restore the checkpoint from a backup and run the command again; or stay with the generation in use",
        )

    def check_unused(self, operation: Operation) -> None:
        """The new generation must be in use, and have run no batch."""
        state = operation.state_of(self)
        # Its own program could start the query as soon as the new checkpoint was in place.
        exchanged = state == "started" and operation.places.is_new_in_place
        if state != "done" and not exchanged:
            return
        plan, number = operation.plan, self.old
        current = operation.ledger.find_stream(plan.stream).current_generation
        if current != number and not exchanged:
            raise Refused(
                "undo-superseded",
                f"Generation {number}, which the operation switched to, is no longer in use",
                where=f"stream {plan.stream}",
                expected=f"generation {number} in use",
                found=f"generation {current} in use",
                hint=f"undo the newer operation first: {undo_command(_newest_switch(operation))}",
            )
        found = read_logs(operation.places.store_of_new())
        skipped, (_, built) = skipped_in(plan, number), base_of(plan, number)
        left = (built.planned, built.last) if skipped is None else (skipped, skipped)
        # A staged run goes further than the plan; how far is known from its journal line alone.
        ran = (facts for one in plan.actions if PLANNED in (facts := operation.facts_of(one)))
        planned, committed = next(((facts[PLANNED], facts[COMMITTED]) for facts in ran), left)
        if found.committed > committed or found.planned > planned:
            raise Refused(
                "undo-late",
                "The stream has run since the operation was applied: undo would leave its sink ahead of its checkpoint",
                where=f"stream {plan.stream}",
                expected=f"batch {committed} as the newest committed",
                found=f"batch {found.committed} committed, batch {found.planned} planned",
                hint="to go back to an older batch: "
                f"{command('plan', 'rebuild', plan.stream, '--at', at_batch(plan.facts.target))}",
            )

    def take_back(self, operation: Operation) -> None:
        places = operation.places
        places.swap_back()
        places.record_back()
        _use(operation, self.new)


def _seen_in(store: ReadStore) -> dict[str, object]:
    logs = read_logs(store)
    return {"query": logs.query_id, PLANNED: logs.planned, COMMITTED: logs.committed}


def _newest_switch(operation: Operation) -> str:
    """The newest applied operation that has switched generations."""
    stream = operation.stream
    applied = [one for one in operation.ledger.operations(operation.plan.stream) if one.status == "applied"]
    for one in reversed(applied):
        folder = operation.home.operation(stream.pipeline, stream.name, one.id)
        try:
            plan = parse(open_read_store(folder).read(PLAN_FILE).decode(), folder / PLAN_FILE)
        except (OSError, ValueError, SlackwaterError):
            # Only a hint depends on it.
            return one.id
        if any(action.switch is not None for action in plan.actions):
            return one.id
    return applied[-1].id


def _use(operation: Operation, number: int) -> None:
    operation.ledger.set_current_generation(operation.plan.stream, number)
    write_stream_file_of(operation.home, operation.ledger, operation.plan.stream)


def _check_seen(store: ReadStore, expected: Mapping[str, object], what: str, hint: str) -> None:
    found = _seen_in(store)
    if found != expected:
        shown = [", ".join(f"{name} {value}" for name, value in facts.items()) for facts in (expected, found)]
        raise Refused("checkpoint-changed", what, where=store.location, expected=shown[0], found=shown[1], hint=hint)
