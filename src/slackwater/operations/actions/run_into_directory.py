"""Runs the batch of a backfill into a directory, or removes it. The stream is not changed.

The operation claims the directory before the first file, so that undo removes only its own files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from slackwater.core.errors import Refused
from slackwater.core.records import GenerationRecord
from slackwater.core.sink import BackfillDirectory
from slackwater.ledger.recording.log_copier import copy_new
from slackwater.operations.action import ActionFacts, Inverse
from slackwater.operations.actions.common.base import base_of
from slackwater.operations.actions.common.facts import LAYOUT, NOTHING
from slackwater.operations.actions.common.one_batch import OneBatch, run_once
from slackwater.operations.apply.operation import Operation
from slackwater.operations.plan.plan import BEFORE_ALL
from slackwater.sinks.files import backfill_output


@dataclass(frozen=True, slots=True)
class EmptyDirectory(Inverse):
    """Remove the operation's files; the directory stays."""

    output: BackfillDirectory
    kind: Literal["empty-directory"] = "empty-directory"

    def text(self) -> str:
        return f"remove from {self.output.path} what the operation has written to it"

    def check_unused(self, operation: Operation) -> None:
        """Streams that have read the directory would keep rows that are nowhere else."""
        output = backfill_output.open_backfill_output(self.output)
        if operation.journal.state(operation.index_of(self)) == "undoing" or output.owner() is None:
            # A continued undo has checked this, and without the owner file nothing is removed from the directory.
            return
        written = operation.stream._replace(sink=backfill_output.identity(self.output))
        readers = operation.readers(written, output.cut_after(BEFORE_ALL, {}))
        if readers:
            raise Refused(
                "backfill-directory-was-read",
                "The rows of the backfill directory would be removed, but other streams have read them",
                where=output.location,
                found=", ".join(readers),
                hint="the backfill directory can stay: the stream does not depend on it",
            )

    def take_back(self, operation: Operation) -> None:
        backfill_output.discard(self.output, operation.plan.id)


@dataclass(frozen=True, slots=True)
class RunIntoDirectory(OneBatch):
    """Readers of the file sink's manifest need every entry from 0 on. ``ends``: end offsets by source, as in Spark's
    log.
    """

    number: int
    ends: dict[str, str]
    output: BackfillDirectory
    kind: Literal["run-into-directory"] = "run-into-directory"

    needs = ("backfill-directory",)
    undone_by = EmptyDirectory

    @property
    def ran(self) -> int:
        return 0

    def text(self) -> str:
        where = f"{self.output.path}, as {self.output.format} files"
        return f"run the batch with generation {self.number} into {where}"

    def inverse(self) -> EmptyDirectory:
        return EmptyDirectory(self.output)

    def do(self, operation: Operation) -> ActionFacts:
        plan, output = operation.plan, self.output
        backfill_output.claim(output, plan.id, plan.stream, str(operation.home.location))
        record = _record(operation, self.number)
        run_once(operation, self, record, lambda replayer, run: replayer.run_into_directory(run, output))
        # The ledger keeps the range that was read, also once ``prune`` has deleted the checkpoint.
        copy_new(operation.ledger, plan.stream, self.number, operation.store(self.number))
        return NOTHING


def _record(operation: Operation, number: int) -> GenerationRecord:
    index, built = base_of(operation.plan, number)
    folder, layout = str(operation.checkpoint(number)), operation.journal.facts(index).get(LAYOUT)
    return GenerationRecord(operation.plan.stream, number, folder, query_id=built.query_id, layout=layout)
