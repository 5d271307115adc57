"""A stream's trigger as a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TriggerKind = Literal["processing-time", "available-now", "once", "continuous"]


@dataclass(frozen=True, slots=True)
class Trigger:
    """``interval`` is Spark's spelling of a duration; triggers that end by themselves have none."""

    kind: TriggerKind
    interval: str | None = None

    @property
    def ends_by_itself(self) -> bool:
        """Whether a query with this trigger ends once it is caught up."""
        return self.kind in ("available-now", "once")
