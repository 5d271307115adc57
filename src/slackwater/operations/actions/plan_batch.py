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
    """Plan ``batch`` with its recorded range as the next batch."""

    number: int
    batch: int
    kind: Literal["plan-batch"] = "plan-batch"

    def text(self) -> str:
        return f"plan batch {self.batch} with its recorded range"

    def do(self, operation: Operation) -> ActionFacts:
        entry = operation.history.offsets[self.batch].encode("utf-8", "surrogateescape")
        write_log(operation.store(self.number), offset_path(self.batch), entry)
        return NOTHING
