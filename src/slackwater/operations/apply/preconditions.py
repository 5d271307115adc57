"""Checks the preconditions of one action just before it starts, and reports what changed since the plan was made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from slackwater.core.errors import Moved
from slackwater.operations.action import PRECONDITIONS, Precondition, PreconditionName
from slackwater.operations.plan.plan import Plan
from slackwater.operations.plan.words import plan_again

DIGEST_SHOWN = 12


def check(plan: Plan, index: int, facts: Mapping[PreconditionName, Callable[[], str]]) -> None:
    """Compare the preconditions of an action with the facts. Raises Moved at the first that no longer holds."""
    compare(
        plan,
        [one for one in plan.preconditions if one.action == index],
        lambda precondition: facts[precondition.name](),
        plan,
    )


def compare(
    plan: Plan, preconditions: Iterable[Precondition], fact_of: Callable[[Precondition], str], whole: Plan
) -> None:
    """Raises Moved at the first precondition whose fact has changed. The hint is how to plan the ``whole`` again."""
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
    """Raises Moved (``moved-number``) where another operation has used the number of the checkpoint to be built.

    A backfill into a directory does so without a change of what preconditions are about.
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
