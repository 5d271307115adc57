"""Skips a batch in the new checkpoint that another checkpoint runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from slackwater.checkpoint.layout import commit_path, offset_path
from slackwater.checkpoint.writer import write_log
from slackwater.operations.action import Action, ActionFacts
from slackwater.operations.actions.common.facts import NOTHING
from slackwater.operations.apply.operation import Operation
from slackwater.operations.plan.plan import Plan


@dataclass(frozen=True, slots=True)
class SkipBatch(Action):
    number: int
    batch: int
    kind: Literal["skip-batch"] = "skip-batch"

    def text(self) -> str:
        return f"skip batch {self.batch} in it: the query continues with batch {self.batch + 1} from where it is"

    def do(self, operation: Operation) -> ActionFacts:
        """Repeats entries, from which Spark continues."""
        store, before = operation.store(self.number), self.batch - 1
        write_log(store, offset_path(self.batch), store.read(offset_path(before)))
        write_log(store, commit_path(self.batch), store.read(commit_path(before)))
        return NOTHING


def skipped_in(plan: Plan, number: int) -> int | None:
    return next((one.batch for one in plan.actions if isinstance(one, SkipBatch) and one.number == number), None)
