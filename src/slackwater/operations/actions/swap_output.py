from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from slackwater.core.commands import command
from slackwater.core.errors import Refused
from slackwater.core.records import leader_id
from slackwater.core.sink import Swap
from slackwater.operations.action import Action, ActionFacts, Inverse
from slackwater.operations.actions.common.facts import NOTHING
from slackwater.operations.apply.operation import Operation
from slackwater.operations.apply.witness import backup_for, changed_nothing, check_records, check_started
from slackwater.operations.plan.adopted import OUTPUT_FIRST


@dataclass(frozen=True, slots=True)
class SwapBack(Inverse):
    swap: Swap
    kind: Literal["swap-back"] = "swap-back"

    def text(self) -> str:
        return "put the old output back in its place"

    def check(self, operation: Operation) -> None:
        check_records(operation, operation.index_of(self))
        if not changed_nothing(operation, operation.index_of(self)):
            operation.output.check_swap_back(self.swap, operation.backup)

    def check_unused(self, operation: Operation) -> None:
        """Raises Refused if a stream has read the new output: all rows of the old output would be new to it."""
        index, output = operation.index_of(self), operation.output
        if operation.journal.state(index) == "undoing" or changed_nothing(operation, index):
            # After a kill in the middle of an undo the old output may be back, and its readers are no reason to refuse.
            return
        whole = output.whole(operation.history.written)
        readers = [one for one in operation.readers(operation.stream, whole) if not _is_undone_with(operation, one)]
        if readers:
            raise Refused(
                "cut-was-read",
                "The output that was put in place has been read: all of the old one would be new to its readers",
                where=operation.output.location,
                expected="an output that no other stream has read since",
                found=", ".join(readers),
                hint=f"nothing was changed; the stream can stay with it: {command('status', operation.plan.stream)}",
            )

    def take_back(self, operation: Operation) -> None:
        if not changed_nothing(operation, operation.index_of(self)):
            operation.output.swap_back(self.swap, operation.backup)


@dataclass(frozen=True, slots=True)
class SwapOutput(Action):
    """Atomic for readers of its log; the old output is kept."""

    swap: Swap
    kind: Literal["swap-output"] = "swap-output"

    needs = ("written", "readers", "others")
    needs_adopted = ("planned", "committed", "writer")
    risk_adopted = OUTPUT_FIRST
    changes_in_use = changes_output = True
    undone_by = SwapBack

    @property
    def change(self) -> Swap:
        return self.swap

    def text(self) -> str:
        return "put it in the place of the output, in one step for readers of its log or table; the old output stays"

    def inverse(self) -> SwapBack:
        return SwapBack(self.swap)

    def check_continued(self, operation: Operation) -> None:
        check_started(operation, self)

    def do(self, operation: Operation) -> ActionFacts:
        operation.output.swap(self.swap, backup_for(operation, self))
        written = operation.output.last_written()
        if written is not None:
            operation.ledger.record_sink_mark(operation.plan.stream, written)
        return NOTHING


def _is_undone_with(operation: Operation, reader: str) -> bool:
    whole = leader_id(operation.plan.id)
    return any(leader_id(one.id) == whole for one in operation.ledger.operations(reader))
