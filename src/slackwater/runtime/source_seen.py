"""One source of a query with its recorded position, and its position at a target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slackwater.errors import Refused
from slackwater.sources.contract import EmptyBase, SourceEntries

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BY_BATCH = "last-written and batch:N are recorded positions of all sources"
ENDS = "earliest and latest are the ends of what a source has"


@dataclass(frozen=True, slots=True)
class Position:
    """Where a source is at a target. ``before``: its current offset, ``None`` for none yet.

    ``base`` is an empty batch at the position. ``summary`` is a line for people: the source, before -> after, and what
    is in between.
    """

    before: str | None
    base: EmptyBase
    summary: str


@dataclass(frozen=True, slots=True)
class SourceSeen:
    """A source of a query. ``current`` and ``log`` are recorded; ``interval`` is that of compactions of file logs."""

    name: str
    description: str
    frame: DataFrame
    relation: Any
    current: str | None
    log: SourceEntries
    interval: int

    @property
    def where(self) -> str:
        """The source for people."""
        return f"source {self.name} ({self.description})"

    def at(self, base: EmptyBase, change: str) -> Position:
        """The position with this base; ``change`` is what it means for the source, for people."""
        return Position(self.current, base, f"{self.where}: {change}")

    def unrecorded(self, entries: Sequence[str]) -> Refused:
        """The error for a position that only entries of the source's own log define, which are not recorded."""
        return unsupported(
            self.where,
            "the files that it has read are not all recorded",
            found=f"entries {', '.join(entries)} of its log are missing",
            hint="earliest, latest, time:... and by:... need no record of them",
        )


def unsupported(
    where: str, what: str, *, expected: str | None = None, found: str | None = None, hint: str = BY_BATCH
) -> Refused:
    """The error for a target whose position in a source is unknown; the hint is what is possible instead."""
    return Refused(
        "target-unsupported",
        f"The position at the target is unknown: {what}",
        where=where,
        expected=expected,
        found=found,
        hint=hint,
    )


def out_of_range(where: str, what: str, *, expected: str | None = None, found: str, hint: str = ENDS) -> Refused:
    """The error for a target that a source does not have; ``expected`` is what it has."""
    return Refused(
        "target-out-of-range",
        f"The target is outside of what the source has: {what}",
        where=where,
        expected=expected,
        found=found,
        hint=hint,
    )
