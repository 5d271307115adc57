from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from slackwater.checkpoint.logs import read_logs
from slackwater.core.program import program_of_batch
from slackwater.operations.action import Action, ActionFacts
from slackwater.operations.actions.common.base import check_same_code, check_same_query
from slackwater.operations.actions.common.facts import COMMITTED, PLANNED
from slackwater.operations.actions.common.record import record_of
from slackwater.operations.apply.operation import Operation
from slackwater.operations.apply.replayer import OperationRun, Replayer


@dataclass(frozen=True, slots=True)
class RunStaged(Action):
    number: int
    kind: Literal["run-staged"] = "run-staged"

    needs = ("pipeline",)
    changes_output = uses_checkpoint = True
    reads = "rest"

    def text(self) -> str:
        return f"run the query with generation {self.number} into it, until it has caught up"

    def do(self, operation: Operation) -> ActionFacts:
        """A killed run is continued exactly-once. Raises Refused if the query has changed."""
        replayer = operation.open_replayer()
        check_same_code(operation, self.number, replayer)
        _check_run_before(operation, self.number, replayer)
        generation = record_of(operation, self.number)
        # Before the run: rows of runs and batches refer to their generation by a foreign key.
        operation.ledger.add_generation(generation)
        run = OperationRun(
            generation, operation.stream, operation.plan.id, operation.epoch, operation.ledger, operation.home
        )
        replayer.run_staged(run)
        logs = read_logs(operation.store(self.number))
        return {PLANNED: logs.planned, COMMITTED: logs.committed}


def _check_run_before(operation: Operation, number: int, replayer: Replayer) -> None:
    name, ledger = operation.plan.stream, operation.ledger
    known = next((one for one in ledger.generations(name) if one.number == number), None)
    if known is None or all(run.generation != number for run in ledger.runs(name)):
        return
    ran = program_of_batch(known.programs, read_logs(operation.store(number)).committed + 1)
    check_same_query(operation.plan, ran, replayer.program(), writes=True)
