"""Errors for targets that a source lacks or whose position is unknown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from slackwater.core.errors import Refused
from slackwater.sources.common.contract import SourceSeen

BY_BATCH = "last-written and batch:N are recorded positions of all sources"
ENDS = "earliest and latest are the ends of what a source has"
SHOWN = 3


def unsupported(
    where: str, what: str, *, expected: str | None = None, found: str | None = None, hint: str = BY_BATCH
) -> Refused:
    """The error for a target of unknown position; the hint describes the possible targets."""
    return Refused(
        "target-unsupported",
        f"The position at the target is unknown: {what}",
        where=where,
        expected=expected,
        found=found,
        hint=hint,
    )


def out_of_range(where: str, what: str, *, expected: str | None = None, found: str, hint: str = ENDS) -> Refused:
    return Refused(
        "target-out-of-range",
        f"The target is outside of what the source has: {what}",
        where=where,
        expected=expected,
        found=found,
        hint=hint,
    )


def unrecorded(source: SourceSeen, entries: Sequence[str]) -> Refused:
    return unsupported(
        source.where,
        "the files that it has read are not all recorded",
        found=f"entries {', '.join(entries)} of its log are missing",
        hint="earliest, latest, time:... and by:... need no record of them",
    )


def refuse_backward(source: str, found: Sequence[str]) -> None:
    if found:
        raise out_of_range(
            f"source {source}",
            "the range ends before it starts",
            found=listed(found),
            hint="give --to a target that is not before that of --from",
        )


def listed(items: Iterable[str], count: int = SHOWN) -> str:
    found = list(items)
    return ", ".join(found[:count]) + (f" and {len(found) - count} more" if len(found) > count else "")
