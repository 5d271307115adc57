"""Checks a plan's preconditions just before acting, and says what moved since the plan was made."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from slackwater.errors import Moved
from slackwater.model.plan import PRECONDITIONS, Plan

Fact = Callable[[], str]


def check(plan: Plan, facts: Mapping[str, Fact], skip: frozenset[str] = frozenset()) -> None:
    """Compare each precondition with the fact of its name. Raises Moved at the first that no longer holds."""
    for precondition in plan.preconditions:
        if precondition.name in skip:
            continue
        found = facts[precondition.name]()
        if found != precondition.expected:
            raise Moved(
                f"moved-{precondition.name}",
                f"Something moved since the plan was made: {_what(precondition.name, precondition.expected, found)}",
                where=f"stream {plan.stream}",
                expected=_short(precondition.expected),
                found=_short(found),
                hint=f"slackwater plan {plan.goal} {plan.stream}",
            )


def _what(name: str, expected: str, found: str) -> str:
    if name in ("committed", "planned", "written") and found.isdigit() and int(found) > int(expected):
        first, last = int(expected) + 1, int(found)
        batches = f"batch {first} was" if first == last else f"batches {first}-{last} were"
        return f"{batches} {name} since"
    return f"{PRECONDITIONS[name]} changed"


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:12] + "..."  # noqa: PLR2004 - a digest says enough in its first letters
