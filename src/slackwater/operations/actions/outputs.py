"""The output is cut, or built in staging and swapped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from slackwater.core.commands import command
from slackwater.core.errors import Refused
from slackwater.core.records import leader_id
from slackwater.core.sink import Cut, Owner, Swap, cut_step
from slackwater.core.units import batch_range
from slackwater.operations.action import NOTHING, Action, ActionFacts, Inverse
from slackwater.operations.apply.executor import others_in
from slackwater.operations.apply.operation import Operation, backup_for, changed_nothing, check_records, check_started


@dataclass(frozen=True, slots=True)
class RestoreSink(Inverse):
    cut: Cut
    kind: Literal["restore-sink"] = "restore-sink"

    def text(self) -> str:
        return f"restore {_batches(self.cut)} in the sink"

    def check(self, operation: Operation) -> None:
        check_records(operation, operation.index_of(self))
        if not changed_nothing(operation, operation.index_of(self)):
            operation.output.check_restore(self.cut, operation.backup)

    def take_back(self, operation: Operation) -> None:
        if not changed_nothing(operation, operation.index_of(self)):
            operation.output.restore(self.cut, operation.backup)


@dataclass(frozen=True, slots=True)
class CutSink(Action):
    """Cut batches that the output listed; the backup keeps them."""

    cut: Cut
    kind: Literal["cut-sink"] = "cut-sink"

    needs = ("written", "readers", "others")
    changes_in_use = changes_output = True
    undone_by = RestoreSink

    @property
    def change(self) -> Cut:
        return self.cut

    def text(self) -> str:
        return f"{cut_step(self.cut.after)}: {_taken_out(self.cut)}, moved to the backup"

    def inverse(self) -> RestoreSink:
        return RestoreSink(self.cut)

    def check_continued(self, operation: Operation) -> None:
        check_started(operation, self)

    def do(self, operation: Operation) -> ActionFacts:
        operation.output.cut(self.cut, operation.history.written, backup_for(operation, self))
        operation.ledger.record_sink_mark(operation.plan.stream, self.cut.after)
        return NOTHING


def _batches(cut: Cut) -> str:
    return batch_range(cut.batches[0], cut.batches[-1])


def _taken_out(cut: Cut) -> str:
    if cut.members:
        return "; ".join(_taken_out(part) for part in cut.members if part.batches)
    files = f"{len(cut.files)} files, {cut.bytes:,} bytes" if cut.files else ""
    rows = f"{cut.rows:,} rows" if cut.rows is not None else ""
    return ", ".join(filter(None, (rows, files))) or _batches(cut)


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
