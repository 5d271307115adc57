"""The query runs with a new generation: the record of the generation, a batch, or all into the staged output."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from slackwater.checkpoint.layout import offset_path
from slackwater.checkpoint.logs import read_logs
from slackwater.checkpoint.operators import state_stores
from slackwater.checkpoint.writer import write_log
from slackwater.core.checkpoint import SourceOffset
from slackwater.core.commands import command
from slackwater.core.errors import Refused
from slackwater.core.program import program_of_batch
from slackwater.core.records import GenerationRecord
from slackwater.formats.text_log import render_offset_entry
from slackwater.operations.action import COMMITTED, LAYOUT, PLANNED, PROGRAMS, Action, ActionFacts
from slackwater.operations.actions.batches import skipped_in
from slackwater.operations.actions.generations import (
    Base,
    StartGeneration,
    base_of,
    check_same_code,
    check_same_query,
    entry_of,
)
from slackwater.operations.apply.operation import Operation
from slackwater.operations.apply.replayer import OperationRun, Replayer
from slackwater.operations.goals.backfill import check_writer, stateful
from slackwater.operations.plan.context import ends_after
from slackwater.operations.plan.document import plan_again
from slackwater.operations.plan.plan import BEFORE_ALL, Plan
from slackwater.storage.protocols import WriteStore

Running = Callable[[Replayer, OperationRun], None]


class OneBatch(Action):
    """``ends``: end offsets by source, as Spark writes them."""

    __slots__ = ()

    number: int
    ends: dict[str, str]

    reads = "range"
    uses_checkpoint = True

    @property
    @abstractmethod
    def ran(self) -> int:
        """The id of the batch."""


def run_once(operation: Operation, action: OneBatch, record: GenerationRecord, run: Running) -> None:
    """Runs the batch; a killed run is continued exactly-once.

    Raises Refused if the code has changed since the first attempt, or Spark ran a different batch.
    """
    store = operation.store(action.number)
    if read_logs(store).committed < action.ran:
        _check_query(operation, action)
        # Before the run: rows of runs and batches refer to their generation by a foreign key.
        operation.ledger.add_generation(record)
        # Without a planned entry Spark would plan a batch of its own, with all that the sources have.
        _plan(operation, action, store)
        recorded = OperationRun(
            record, operation.stream, operation.plan.id, operation.epoch, operation.ledger, operation.home
        )
        run(operation.open_replayer(), recorded)
    found = read_logs(store)
    if (found.planned, found.committed) != (action.ran, action.ran):
        raise Refused(
            "replay-strayed",
            "Spark ran another batch than the one of the backfill",
            where=store.location,
            expected=f"batch {action.ran} planned and committed",
            found=f"batch {found.planned} planned, batch {found.committed} committed",
            hint=_ways_on(operation, action),
        )


def _check_query(operation: Operation, action: OneBatch) -> None:
    """Raises Refused for other code: an output may already hold the batch from the first attempt."""
    replayer = operation.open_replayer()
    if replayer.profile().stateful:
        raise stateful(operation.plan.stream)
    check_writer(operation.stream, replayer, into_directory=not action.changes_in_use)
    check_same_code(operation, action.number, replayer, writes=True)


def _ways_on(operation: Operation, action: OneBatch) -> str:
    if not action.changes_in_use:
        # No stream depends on a backfill directory: what was written to it is removed.
        return f"nothing in use was changed; plan again: {plan_again(operation.plan)}"
    return f"go back: {command('undo', operation.plan.id, '--yes')}"


def _plan(operation: Operation, action: OneBatch, store: WriteStore) -> None:
    _, base = base_of(operation.plan, action.number)
    if isinstance(base, StartGeneration):
        ends = tuple(SourceOffset(start.source, action.ends[start.source]) for start in base.starts)
        entry = entry_of(operation, base)._replace(offsets=ends)
        write_log(store, offset_path(action.ran), render_offset_entry(entry))


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


@dataclass(frozen=True, slots=True)
class RunStaged(Action):
    number: int
    kind: Literal["run-staged"] = "run-staged"

    needs = ("pipeline",)
    changes_output = uses_checkpoint = True
    reads = "rest"

    def text(self) -> str:
        return f"run the query with generation {self.number} into it, until it has caught up"

    def do(self, operation: Operation) -> ActionFacts:
        """A killed run is continued exactly-once. Raises Refused if the query has changed."""
        replayer = operation.open_replayer()
        check_same_code(operation, self.number, replayer)
        _check_run_before(operation, self.number, replayer)
        generation = record_of(operation, self.number)
        # Before the run: rows of runs and batches refer to their generation by a foreign key.
        operation.ledger.add_generation(generation)
        run = OperationRun(
            generation, operation.stream, operation.plan.id, operation.epoch, operation.ledger, operation.home
        )
        replayer.run_staged(run)
        logs = read_logs(operation.store(self.number))
        return {PLANNED: logs.planned, COMMITTED: logs.committed}


def _check_run_before(operation: Operation, number: int, replayer: Replayer) -> None:
    name, ledger = operation.plan.stream, operation.ledger
    known = next((one for one in ledger.generations(name) if one.number == number), None)
    if known is None or all(run.generation != number for run in ledger.runs(name)):
        return
    ran = program_of_batch(known.programs, read_logs(operation.store(number)).committed + 1)
    check_same_query(operation.plan, ran, replayer.program(), writes=True)
