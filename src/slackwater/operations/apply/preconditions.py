"""Checks the preconditions of an action just before it starts.

Recorded programs are compared with the present program: a rebuild that leaves the output wrong would hide the change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from slackwater.core.errors import Moved, Refused
from slackwater.core.program import PROGRAM, digest_of, program_of_batch
from slackwater.core.records import StreamRecord
from slackwater.core.sink import Others, others_of
from slackwater.core.verdict import Effect
from slackwater.diagnose.program_changes import recorded_verdict
from slackwater.diagnose.refusal import NO_GOAL, ways_with
from slackwater.ledger.ledger import Ledger
from slackwater.operations.action import PRECONDITIONS, Precondition, PreconditionName
from slackwater.operations.plan.plan import Plan
from slackwater.operations.plan.words import plan_again
from slackwater.sinks.common.contract import of_any_query
from slackwater.sinks.common.registry import open_output


def check_consent(plan: Plan, command: str) -> None:
    for one in plan.members:
        found = others_in(one)
        if found.any:
            name = plan.stream.rpartition("/")[2]
            raise refused(one.stream, found, f"if they may go: {command} --discard-others {name}")


def others_in(plan: Plan) -> Others:
    changes = [action.change for action in plan.actions if action.change is not None]
    return others_of(changes[0]) if changes else Others()


def refused(stream: str, found: Others, hint: str) -> Refused:
    whose = "that others have written" if found.sure else "of which it is unknown whether others have written them"
    return Refused(
        "rows-of-others",
        f"The operation would take rows out of the output {whose}",
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
        f"A rebuild of stream {stream.full_name} would not make its output right: "
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


DIGEST_SHOWN = 12


def check(plan: Plan, index: int, facts: Mapping[PreconditionName, Callable[[], str]]) -> None:
    compare(
        plan,
        [one for one in plan.preconditions if one.action == index],
        lambda precondition: facts[precondition.name](),
        plan,
    )


def compare(
    plan: Plan, preconditions: Iterable[Precondition], fact_of: Callable[[Precondition], str], whole: Plan
) -> None:
    """Raises Moved at the first changed fact. The hint plans the ``whole`` again."""
    for precondition in preconditions:
        found = fact_of(precondition)
        if found != precondition.expected:
            raise Moved(
                f"moved-{precondition.name}",
                "Something has changed since the plan was made: "
                + _what(precondition.name, precondition.expected, found),
                where=f"stream {plan.stream}",
                expected=_short(precondition.expected),
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


def _what(name: PreconditionName, expected: str, found: str) -> str:
    # A plan can be edited: what it expects may be no number.
    numbers = expected.removeprefix("-").isdecimal() and found.isdecimal()
    if name in ("committed", "planned", "written") and numbers and int(found) > int(expected):
        first, last = int(expected) + 1, int(found)
        batches = f"batch {first} was" if first == last else f"batches {first}-{last} were"
        return f"{batches} {name} since"
    return f"{PRECONDITIONS[name]} changed"


def _short(value: str) -> str:
    return value if len(value) <= 60 else value[:DIGEST_SHOWN] + "..."  # noqa: PLR2004 - a digest is recognised by its start
