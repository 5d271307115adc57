from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

TriggerKind = Literal["processing-time", "available-now", "once", "continuous", "real-time"]


@dataclass(frozen=True, slots=True)
class Trigger:
    """``interval`` is Spark's spelling of a duration; triggers that end by themselves have none."""

    kind: TriggerKind
    interval: str | None = None

    @property
    def ends_by_itself(self) -> bool:
        return self.kind in ("available-now", "once")

    @property
    def in_micro_batches(self) -> bool:
        """Whether a batch's range is in the offset log before its rows are read."""
        return self.kind not in ("continuous", "real-time")

    @property
    def waits(self) -> bool:
        """Whether it waits between batches although there may be data."""
        return self.kind == "processing-time" and not re.match(r"\s*0+\s*[a-z]", self.interval or "")
