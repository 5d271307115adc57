"""Plans the batch behind the replayed ones in the new checkpoint, with the range that it was recorded with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from slackwater.checkpoint.layout import offset_path
from slackwater.checkpoint.writer import write_log
from slackwater.operations.action import Action, ActionFacts
from slackwater.operations.actions.common.facts import NOTHING
from slackwater.operations.apply.operation import Operation


@dataclass(frozen=True, slots=True)
class PlanBatch(Action):
    """Plan ``batch`` in the new checkpoint with its recorded range, so that it is the next to run."""

    number: int
    batch: int
    kind: Literal["plan-batch"] = "plan-batch"

    def text(self) -> str:
        return f"plan batch {self.batch} with its recorded range"

    def do(self, operation: Operation) -> ActionFacts:
        """Write its entry into ``offsets/``; Spark runs it first when the query starts."""
        entry = operation.history.offsets[self.batch].encode("utf-8", "surrogateescape")
        write_log(operation.store(self.number), offset_path(self.batch), entry)
        return NOTHING
