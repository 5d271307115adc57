from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from slackwater.core.sink import Owner
from slackwater.operations.action import Action, ActionFacts, Inverse
from slackwater.operations.actions.common.facts import NOTHING
from slackwater.operations.apply.operation import Operation
from slackwater.operations.apply.preconditions import others_in


@dataclass(frozen=True, slots=True)
class DiscardStaged(Inverse):
    kind: Literal["discard-staged"] = "discard-staged"

    def text(self) -> str:
        return "remove the staged output"

    def take_back(self, operation: Operation) -> None:
        operation.output.discard_staged(operation.plan.id)


@dataclass(frozen=True, slots=True)
class StageOutput(Action):
    """The staged output has the batches up to ``after``, -1 for none."""

    after: int
    kind: Literal["stage-output"] = "stage-output"

    needs = ("written", "readers", "others")
    changes_output = True
    undone_by = DiscardStaged

    def text(self) -> str:
        batches = f"with batches 0..{self.after}" if self.after >= 0 else "without any batch"
        return f"prepare a staged output, {batches}"

    def inverse(self) -> DiscardStaged:
        return DiscardStaged()

    def do(self, operation: Operation) -> ActionFacts:
        output, identifier = operation.output, operation.plan.id
        stream = operation.stream
        owner = Owner(stream.id or "", stream.full_name, str(operation.home.location))
        # First: an output of another stream is refused here, and not when its replacement is complete.
        output.claim(owner)
        if not others_in(operation.plan).sure:
            output = output.without_marker() or output
        output.stage(identifier, self.after, operation.history.written)
        output.staged(identifier).claim(owner)
        return NOTHING
