"""Applies plans and takes them back: one loop over the actions, each journaled before and after it is done.

A killed apply is continued by running it again, or taken back by ``undo``. Three outcomes: applied, refused (what was
built aside is removed, nothing in use was changed), unknown (nothing more is changed).
"""

from __future__ import annotations

import shlex
from typing import assert_never

from slackwater.apply import preconditions
from slackwater.apply.actions import (
    base,
    build_generation,
    copy_generation,
    cut_sink,
    plan_batch,
    replay_batches,
    run_aside,
    run_backfill,
    skip_batch,
    stage_output,
    start_generation,
    switch_generation,
    verify_generation,
)
from slackwater.apply.actions.facts import ActionFacts
from slackwater.apply.journal import End
from slackwater.apply.operation import PLAN_FILE, Operation
from slackwater.diagnose.words import undo_command
from slackwater.errors import OutcomeUnknown, SlackwaterError
from slackwater.model.actions import (
    Action,
    Base,
    BuildGeneration,
    Building,
    CopyGeneration,
    CutBackfill,
    CutSink,
    DiscardAside,
    DiscardStaged,
    Inverse,
    PlanBatch,
    RemoveGeneration,
    ReplayBatches,
    RestoreSink,
    RunAside,
    RunBackfill,
    RunStaged,
    SkipBatch,
    StageOutput,
    StartGeneration,
    SwapBack,
    SwapOutput,
    SwitchGeneration,
    VerifyGeneration,
)
from slackwater.model.plan import Plan, Undo
from slackwater.plan.words import where_to


def execute(operation: Operation) -> None:
    """Apply the plan, or what is left of it.

    Raises Refused (or another error) where nothing in use was changed, OutcomeUnknown where something may have been.
    An interruption (KeyboardInterrupt) leaves the operation to be continued or undone, and has a note on how.
    """
    journal = operation.journal
    try:
        for index, action in enumerate(operation.plan.actions):
            if journal.state(index) != "done":
                _apply_one(operation, index, action)
    except (SlackwaterError, OSError) as error:
        _fail(operation, error)
        raise
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(_ways(operation))
        raise
    _end(operation, "applied", summary_of(operation.plan))


def summary_of(plan: Plan) -> str:
    """What the ledger records of an operation that was applied."""
    return f"{plan.goal} {where_to(plan)}"


def undo(operation: Operation) -> None:
    """Take back what the operation has done, the last action first, as far as it came. Can be repeated after a kill."""
    try:
        _take_back_all(operation)
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(f"continue: {undo_command(operation.plan.id)}")
        raise
    _end(operation, "undone", "undone")


def has_changed_what_is_in_use(operation: Operation) -> bool:
    """Whether an action was started that changes more than what is built aside."""
    return any(
        operation.journal.state(index) is not None
        for index, action in enumerate(operation.plan.actions)
        if isinstance(action, CutSink | SwapOutput | RunBackfill | SwitchGeneration)
    )


def _apply_one(operation: Operation, index: int, action: Action) -> None:
    journal, now_ms = operation.journal, operation.ledger.now_ms
    operation.progress.action(action)
    if journal.state(index) is None:
        preconditions.check(operation.plan, index, operation.facts)
        if isinstance(action, Base):
            base.check_absent(operation, action)
        journal.write(index, action.kind, "started", now_ms())
    facts = _do(operation, action)
    journal.write(index, action.kind, "done", now_ms(), facts)


def _do(operation: Operation, action: Action) -> ActionFacts:
    if isinstance(action, Building):
        return _build(operation, action)
    match action:
        case CutSink():
            return cut_sink.do(operation, action)
        case StageOutput():
            return stage_output.stage(operation, action)
        case RunStaged():
            return stage_output.run_into_it(operation, action)
        case SwapOutput():
            return stage_output.swap(operation, action)
        case RunBackfill():
            return run_backfill.do(operation, action)
        case RunAside():
            return run_aside.do(operation, action)
        case SwitchGeneration():
            return switch_generation.do(operation, action)
        case _:
            assert_never(action)


def _build(operation: Operation, action: Building) -> ActionFacts:
    match action:
        case BuildGeneration():
            return build_generation.do(operation, action)
        case CopyGeneration():
            return copy_generation.do(operation, action)
        case StartGeneration():
            return start_generation.do(operation, action)
        case ReplayBatches():
            return replay_batches.do(operation, action)
        case PlanBatch():
            return plan_batch.do(operation, action)
        case SkipBatch():
            return skip_batch.do(operation, action)
        case VerifyGeneration():
            return verify_generation.do(operation, action)
        case _:
            assert_never(action)


def _take_back_all(operation: Operation) -> None:
    for one in operation.plan.undo:
        if operation.journal.state(one.action) is not None:
            _undo_one(operation, one)


def _undo_one(operation: Operation, one: Undo) -> None:
    journal, now_ms = operation.journal, operation.ledger.now_ms
    operation.progress.action(one.inverse)
    if isinstance(one.inverse, RemoveGeneration):
        _forget_work_on_it(operation)
    journal.write(one.action, one.inverse.kind, "undoing", now_ms())
    _take_back(operation, one.inverse)
    journal.write(one.action, one.inverse.kind, "undone", now_ms())


def _forget_work_on_it(operation: Operation) -> None:
    """Actions without an inverse are taken back with the generation that they worked on: they are to be done again."""
    inverted = {one.action for one in operation.plan.undo}
    for index, action in enumerate(operation.plan.actions):
        if index not in inverted and operation.journal.state(index) is not None:
            operation.journal.write(index, action.kind, "undone", operation.ledger.now_ms())


def _take_back(operation: Operation, inverse: Inverse) -> None:
    match inverse:
        case RemoveGeneration():
            base.remove(operation, inverse)
        case RestoreSink():
            cut_sink.restore(operation, inverse)
        case DiscardStaged():
            stage_output.discard(operation)
        case SwapBack():
            stage_output.swap_back(operation, inverse)
        case CutBackfill():
            run_backfill.take_out(operation, inverse)
        case DiscardAside():
            run_aside.discard(operation, inverse)
        case SwitchGeneration():
            switch_generation.back(operation, inverse)
        case _:
            assert_never(inverse)


def _fail(operation: Operation, error: SlackwaterError | OSError) -> None:
    """Remove what was built aside; once the change of something in use was started, nothing more is changed.

    Before a later stage is changed, the earlier ones have been.
    """
    if operation.is_part or has_changed_what_is_in_use(operation):
        raise OutcomeUnknown(
            "apply-interrupted",
            f"The plan was applied in part: {error}",
            where=f"stream {operation.plan.stream}",
            hint=_ways(operation),
        ) from error
    _take_back_all(operation)
    _end(operation, "refused", str(error) or "interrupted")


def _ways(operation: Operation) -> str:
    """How an operation that stopped halfway is brought to an end."""
    return (
        f"continue: slackwater apply {shlex.quote(str(operation.whole / PLAN_FILE))} --yes; "
        f"or go back: {undo_command(operation.plan.id)}"
    )


def _end(operation: Operation, end: End, summary: str) -> None:
    operation.journal.write_end(end, operation.ledger.now_ms())
    operation.ledger.end_operation(operation.plan.id, end, summary)
