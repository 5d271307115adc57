"""Applies plans and undoes them: a loop over the actions, each journaled before and after.

A killed apply can be repeated, which continues it, or undone. Three outcomes: applied, refused (staging is removed,
nothing in use was changed), unknown (nothing more is changed).

An undo or a continued apply first checks the needs of all its steps: a step refused halfway would leave a stream that
can be neither continued nor restored.
"""

from __future__ import annotations

from slackwater.core.commands import apply_command, undo_command
from slackwater.core.errors import LeaseHeld, OutcomeUnknown, Refused, SlackwaterError
from slackwater.operations.action import Action
from slackwater.operations.apply import preconditions
from slackwater.operations.apply.journal import End, move_away
from slackwater.operations.apply.operation import PLAN_FILE, Operation
from slackwater.operations.plan.plan import Plan, Undo
from slackwater.operations.plan.words import where_to
from slackwater.sinks.common.registry import open_each
from slackwater.storage.open import Location


def check_undo(operation: Operation) -> None:
    """Raises Refused if a step of the undo would fail, or change files of others."""
    check_owner(operation)
    inverses = [one.inverse for one in operation.plan.undo if operation.journal.state(one.action) is not None]
    for inverse in inverses:
        inverse.check(operation)
    for inverse in inverses:
        inverse.check_unused(operation)


def check_continued(operation: Operation) -> None:
    if operation.journal.end is not None:
        return
    check_owner(operation)
    for action in operation.plan.actions:
        action.check_continued(operation)


def plan_changed(operation: str, file: Location) -> Refused:
    return Refused(
        "plan-changed",
        f"The plan in the folder of operation {operation} was changed since the operation was started",
        where=str(file),
        expected="the plan that the ledger has recorded",
        hint="nothing was changed; move the plan away, so that the recorded one is used: "
        f"{move_away(file)}; then: {undo_command(operation)}",
    )


def check_owner(operation: Operation) -> None:
    """Raises Refused (``sink-owned``) if a different stream now owns the output."""
    stream = operation.stream
    if not any(action.changes_output for action in operation.plan.actions):
        return
    for output in open_each(stream.sink):
        known = output.owner()
        if known is not None and known.stream_id != stream.id:
            raise Refused(
                "sink-owned",
                f"Operation {operation.plan.id} changes an output that another stream owns; nothing was changed",
                where=output.location,
                expected=f"stream {stream.full_name} of home {operation.home.location}",
                found=f"stream {known.stream} of home {known.home}",
                hint="apply or undo it in the home that owns the output; if no other stream writes to the output, "
                "restore its owner file from a backup",
            )


def execute(operation: Operation) -> None:
    """Raises Refused (or another error) if nothing in use was changed, else OutcomeUnknown. KeyboardInterrupt leaves
    the operation to be continued or undone.
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
    return f"{plan.goal} {where_to(plan)}"


def undo(operation: Operation) -> None:
    """Undoes the operation. Can be repeated after a kill."""
    try:
        _take_back_all(operation)
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(f"continue: {undo_command(operation.plan.id)}")
        raise
    _end(operation, "undone", "undone")


def has_changed_what_is_in_use(operation: Operation) -> bool:
    return any(
        operation.journal.state(index) is not None
        for index, action in enumerate(operation.plan.actions)
        if action.changes_in_use
    )


def _apply_one(operation: Operation, index: int, action: Action) -> None:
    journal, now_ms = operation.journal, operation.ledger.now_ms
    operation.progress.action(action)
    if journal.state(index) is None:
        # Not checked again when it is continued: what a killed action has done may itself have changed these facts.
        preconditions.check(operation.plan, index, operation.look())
        action.check_start(operation)
        journal.write(index, action.kind, "started", now_ms())
    facts = action.do(operation)
    journal.write(index, action.kind, "done", now_ms(), facts)


def _take_back_all(operation: Operation) -> None:
    for one in operation.plan.undo:
        if operation.journal.state(one.action) is not None:
            _undo_one(operation, one)


def _undo_one(operation: Operation, one: Undo) -> None:
    journal, now_ms = operation.journal, operation.ledger.now_ms
    operation.progress.action(one.inverse)
    if one.inverse.removes_generation:
        _forget_work_on_it(operation)
    journal.write(one.action, one.inverse.kind, "undoing", now_ms())
    one.inverse.take_back(operation)
    journal.write(one.action, one.inverse.kind, "undone", now_ms())


def _forget_work_on_it(operation: Operation) -> None:
    """Without an inverse, actions are undone with their generation, and have to be done again."""
    inverted = {one.action for one in operation.plan.undo}
    for index, action in enumerate(operation.plan.actions):
        if index not in inverted and operation.journal.state(index) is not None:
            operation.journal.write(index, action.kind, "undone", operation.ledger.now_ms())


def _fail(operation: Operation, error: SlackwaterError | OSError) -> None:
    """Ends a failed apply. After a lost lease another process has the operation and may use its staging."""
    if isinstance(error, LeaseHeld):
        return
    if operation.is_part or has_changed_what_is_in_use(operation):
        raise OutcomeUnknown(
            "apply-interrupted",
            f"The plan was applied in part: {error}",
            where=f"stream {operation.plan.stream}",
            hint=_ways(operation),
        ) from error
    try:
        _take_back_all(operation)
    except (SlackwaterError, OSError) as left:
        # Most often for the same reason: the store is unreachable.
        raise OutcomeUnknown(
            "apply-interrupted",
            f"The plan was not applied, and what it had built cannot be removed: {error}",
            where=f"stream {operation.plan.stream}",
            found=str(left),
            hint=undo_command(operation.plan.id),
        ) from error
    _end(operation, "refused", str(error) or "interrupted")


def _ways(operation: Operation) -> str:
    return (
        f"continue: {apply_command(str(operation.whole / PLAN_FILE), operation.session)}; "
        f"or go back: {undo_command(operation.plan.id)}"
    )


def _end(operation: Operation, end: End, summary: str) -> None:
    # The journal first: until the ledger has the end too, its open record refuses runs and other plans.
    operation.journal.write_end(end, operation.ledger.now_ms())
    operation.ledger.end_operation(operation.plan.id, end, summary)
