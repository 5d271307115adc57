from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from slackwater.core.sink import Cut, cut_step
from slackwater.core.units import batch_range
from slackwater.operations.action import Action, ActionFacts, Inverse
from slackwater.operations.actions.common.facts import NOTHING
from slackwater.operations.apply.operation import Operation
from slackwater.operations.apply.witness import backup_for, changed_nothing, check_records, check_started


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
    needs_adopted = ("planned", "committed", "writer")
    risk_adopted = (
        "until the plan is wholly applied or undone the program must not be started, also after an apply that was "
        "killed: rows that were cut are missing from its output, and its checkpoint counts their batches as written"
    )
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
