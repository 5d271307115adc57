"""Copies a checkpoint with state and recorded ranges. No batch is run, so neither Spark nor the pipeline file is
needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from slackwater.checkpoint.writer import copy_state
from slackwater.core.program import entries_until
from slackwater.formats.compactible import DEFAULT_INTERVAL
from slackwater.operations.action import ActionFacts
from slackwater.operations.actions.common.base import Base, new_folder, write_entries, write_sources
from slackwater.operations.actions.common.facts import LAYOUT, PROGRAMS
from slackwater.operations.apply.operation import Operation
from slackwater.storage.open import open_read_store

COMPACT_INTERVAL = "spark.sql.streaming.fileSource.log.compactInterval"


@dataclass(frozen=True, slots=True)
class CopyGeneration(Base):
    """``pending``: the batch after ``last``, planned with its recorded range; ``state``: the newest batch whose state
    is copied.
    """

    number: int
    source: int
    query_id: str
    last: int
    pending: int | None
    state: int | None
    kind: Literal["copy-generation"] = "copy-generation"

    needs = ("generation", "planned", "committed", "written", "history", "source-files")

    @property
    def planned(self) -> int:
        return self.last if self.pending is None else self.pending

    def text(self) -> str:
        if self.last < 0:
            what = "without any batch"
        elif self.state is None:
            what = f"with the ranges up to batch {self.last}"
        else:
            what = f"with the state up to batch {self.state}"
        return f"copy generation {self.source} to generation {self.number} in staging, {what}"

    def do(self, operation: Operation) -> ActionFacts:
        generation = operation.ledger.generation(operation.plan.stream, self.source)
        store = new_folder(operation, self)
        write_sources(store, self.planned, operation.batches, _compact_interval(operation), {})
        oldest = _oldest_needed(operation, self)
        write_entries(store, operation.batches, oldest, self.last)
        if self.state is not None:
            # Where the ledger has it: a pipeline can have adopted a checkpoint, so that it is in no home.
            copy_state(open_read_store(generation.location), store, self.state)
        return {LAYOUT: dict(generation.layout or {}), PROGRAMS: entries_until(generation.programs, self.last)}


def _oldest_needed(operation: Operation, action: CopyGeneration) -> int:
    """In format 2 commits name the state files: all batches with state stay."""
    if action.state is None:
        return max(action.last - 1, 0)
    kept = (batch for batch in operation.history.commits if batch in operation.history.offsets)
    return min([batch for batch in kept if batch <= action.last], default=action.last)


def _compact_interval(operation: Operation) -> int:
    run = operation.ledger.last_run(operation.plan.stream)
    text = ((run.settings if run is not None else None) or {}).get(COMPACT_INTERVAL, "")
    return int(text) if text.isascii() and text.isdigit() and int(text) > 0 else DEFAULT_INTERVAL
