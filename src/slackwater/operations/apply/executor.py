"""Applies plans and undoes them: a loop over the actions, each journaled before and after.

A killed apply can be repeated, which continues it, or undone. Three outcomes: applied, refused (staging is removed,
nothing in use was changed), unknown (nothing more is changed).

An undo or a continued apply first checks the needs of all its steps: a step refused halfway would leave a stream that
can be neither continued nor restored.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from slackwater.core.commands import apply_command, undo_command
from slackwater.core.errors import LeaseHeld, Moved, OutcomeUnknown, Refused, SlackwaterError
from slackwater.core.program import PROGRAM, digest_of, program_of_batch
from slackwater.core.records import StreamRecord
from slackwater.core.sink import Others, others_of
from slackwater.core.verdict import Effect
from slackwater.diagnose.program_changes import recorded_verdict
from slackwater.diagnose.refusal import NO_GOAL, ways_with
from slackwater.ledger.ledger import Ledger
from slackwater.operations.action import PRECONDITIONS, Precondition
from slackwater.operations.apply.journal import End, move_away
from slackwater.operations.apply.operation import PLAN_FILE, Operation
from slackwater.operations.plan.document import plan_again, where_to
from slackwater.operations.plan.plan import Plan, change_of
from slackwater.sinks.common.contract import of_any_query
from slackwater.sinks.common.registry import open_each, open_output
from slackwater.storage.open import Location

DIGEST_SHOWN = 12


def check_consent(plan: Plan, command: str) -> None:
    for one in plan.members:
        found = others_in(one)
        if found.any:
            name = plan.stream.rpartition("/")[2]
            raise refused(one.stream, found, f"if they may go: {command} --discard-others {name}")


def others_in(plan: Plan) -> Others:
    change = change_of(plan.actions)
    return Others() if change is None else others_of(change)


def refused(stream: str, found: Others, hint: str) -> Refused:
    rows = "rows that other writers wrote" if found.sure else "rows that may have been written by other writers"
    return Refused(
        "rows-of-others",
        f"The operation would remove {rows}",
        where=f"stream {stream}",
        expected="rows of the stream",
        found=found.text,
        hint=hint,
    )


def check_restorable(
    ledger: Ledger, stream: StreamRecord, target: int | None, program: Mapping[str, object] | None, reference: str
) -> None:
    """Raises Refused (``rebuild-insufficient``) if rows up to ``target`` do not fit the program's.

    ``None``: the newest committed batch; -1: the same program writes all output again. Unrecorded programs refuse
    nothing.
    """
    generation = ledger.generation(stream.full_name, stream.current_generation)
    batch = ledger.newest_entry(stream.full_name, "commits") if target is None else target
    found = recorded_verdict(program_of_batch(generation.programs, batch), program)
    if batch < 0 or found.effect < Effect.NOT_RESTORABLE:
        return
    traits = of_any_query(open_output(stream.sink)).traits
    ways = ways_with(stream.full_name, reference, traits, is_watched=stream.is_watched, session=stream.session)
    raise Refused(
        "rebuild-insufficient",
        f"A rebuild of stream {stream.full_name} would not correct its output: "
        + "; ".join(one.text for one in found.changes if one.effect is Effect.NOT_RESTORABLE),
        hint="\n".join(ways.lines(found)) or NO_GOAL,
    )


def compared_programs(ledger: Ledger, stream: StreamRecord, program: Mapping[str, object] | None) -> dict[str, bool]:
    """Whether recorded programs, by digest, have the rows of ``program``. Unlike digests of optimised plans, programs
    can be compared across releases of Spark.
    """
    if program is None:
        return {}
    entries = (entry for one in ledger.generations(stream.full_name) for entry in one.programs or ())
    recorded: list[Any] = [entry[PROGRAM] for entry in entries if isinstance(entry.get(PROGRAM), Mapping)]
    return {digest_of(one): recorded_verdict(one, program).effect <= Effect.COMPATIBLE for one in [*recorded, program]}


def compare(plan: Plan, facts: Iterable[tuple[Precondition, str]], whole: Plan) -> None:
    """Raises Moved at the first changed fact. The hint plans the ``whole`` again."""
    for precondition, found in facts:
        name, expected = precondition.name, precondition.expected
        if found == expected:
            continue
        what = f"{PRECONDITIONS[name]} changed"
        # A plan can be edited: what it expects may be no number.
        numbers = expected.removeprefix("-").isdecimal() and found.isdecimal()
        if name in ("committed", "planned", "written") and numbers and int(found) > int(expected):
            first, last = int(expected) + 1, int(found)
            batches = f"batch {first} was" if first == last else f"batches {first}-{last} were"
            what = f"{batches} {name} since"
        raise Moved(
            f"moved-{name}",
            f"Something has changed since the plan was made: {what}",
            where=f"stream {plan.stream}",
            expected=_short(expected),
            found=_short(found),
            hint=f"plan again: {plan_again(whole)}",
        )


def check_number(plan: Plan, derived: Plan, whole: Plan) -> None:
    """Raises Moved (``moved-number``) if a different operation, such as a backfill into a directory, used the new
    checkpoint's number.
    """
    planned, free = _built(plan), _built(derived)
    if planned is not None and free is not None and planned < free:
        raise Moved(
            "moved-number",
            "Something has changed since the plan was made: another operation has used the number of the generation "
            "that the plan builds",
            where=f"stream {plan.stream}",
            expected=f"generation {planned} does not exist",
            found=f"the next free number is {free}",
            hint=f"plan again: {plan_again(whole)}",
        )


def _built(plan: Plan) -> int | None:
    return next((action.built for action in plan.actions if action.built is not None), None)


def _short(value: str) -> str:
    return value if len(value) <= 60 else value[:DIGEST_SHOWN] + "..."  # noqa: PLR2004 - a digest is recognised by its start


def check_undo(operation: Operation) -> None:
    """Raises Refused if a step of the undo would fail, or change files of others."""
    check_owner(operation)
    inverses = [one.inverse for one in operation.plan.undo if operation.journal.state(one.action) is not None]
    for inverse in inverses:
        inverse.check(operation)
    for inverse in inverses:
        inverse.check_unused(operation)


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
                f"Operation {operation.plan.id} changes an output that a different stream owns; nothing was changed",
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
    journal, plan, now_ms = operation.journal, operation.plan, operation.ledger.now_ms
    try:
        for index, action in enumerate(plan.actions):
            if journal.state(index) == "done":
                continue
            operation.progress.action(action)
            if journal.state(index) is None:
                # Not checked again when it is continued: what a killed action did may itself have changed these facts.
                seen, due = operation.look(), (one for one in plan.preconditions if one.action == index)
                compare(plan, ((one, seen[one.name]()) for one in due), plan)
                action.check_start(operation)
                journal.write(index, action.kind, "started", now_ms())
            facts = action.do(operation)
            journal.write(index, action.kind, "done", now_ms(), facts)
    except (SlackwaterError, OSError) as error:
        _fail(operation, error)
        raise
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(_ways(operation))
        raise
    _end(operation, "applied", summary_of(plan))


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


def _take_back_all(operation: Operation) -> None:
    journal, plan, now_ms = operation.journal, operation.plan, operation.ledger.now_ms
    inverted = {one.action for one in plan.undo}
    for one in plan.undo:
        if journal.state(one.action) is None:
            continue
        operation.progress.action(one.inverse)
        # Without an inverse, actions are undone with their generation, and have to be done again.
        for index, action in enumerate(plan.actions) if one.inverse.removes_generation else ():
            if index not in inverted and journal.state(index) is not None:
                journal.write(index, action.kind, "undone", now_ms())
        journal.write(one.action, one.inverse.kind, "undoing", now_ms())
        one.inverse.take_back(operation)
        journal.write(one.action, one.inverse.kind, "undone", now_ms())


def _fail(operation: Operation, error: SlackwaterError | OSError) -> None:
    """Ends a failed apply. After a lost lease another process has the operation and may use its staging."""
    if isinstance(error, LeaseHeld):
        return
    changed = any(one.changes_in_use and operation.state_of(one) is not None for one in operation.plan.actions)
    if operation.is_part or changed:
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
            f"The plan was not applied, and its incomplete results cannot be removed: {error}",
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
