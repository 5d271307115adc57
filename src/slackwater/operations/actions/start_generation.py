"""Builds a generation with empty state at chosen positions, for a reset or backfill."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from slackwater.checkpoint.layout import commit_path, offset_path, source_path
from slackwater.checkpoint.writer import write_log
from slackwater.core.checkpoint import OffsetEntry, OffsetMetadata, SourceOffset
from slackwater.core.program import made_by
from slackwater.formats.text_log import render_offset_entry
from slackwater.ledger.recording.source_availability import StoreAvailability
from slackwater.operations.action import ActionFacts
from slackwater.operations.actions.common.base import (
    Base,
    new_folder,
    refuse_lost,
    rename_base,
    run_empty_base,
)
from slackwater.operations.actions.common.facts import CODE, LAYOUT, PROGRAMS
from slackwater.operations.apply.operation import Operation
from slackwater.operations.apply.replayer import Replayer
from slackwater.operations.goals.backfill import ranges_of
from slackwater.operations.plan.plan import SourceStart
from slackwater.operations.plan.words import plan_again
from slackwater.sources.common.source import encoded
from slackwater.storage.protocols import WriteStore


@dataclass(frozen=True, slots=True)
class StartGeneration(Base):
    """``last`` -1: batch 0 is the next."""

    number: int
    query_id: str
    last: int
    starts: tuple[SourceStart, ...]
    kind: Literal["start-generation"] = "start-generation"

    needs = ("generation", "planned", "committed", "written", "pipeline")

    def log_of(self, start: SourceStart) -> dict[str, str]:
        """The source's log to write. If a source cannot start without a batch, its whole first batch is planned."""
        return start.log if self.last >= 0 or start.first is None else start.first

    def text(self) -> str:
        before = f"behind batch {self.last}" if self.last >= 0 else "before batch 0"
        return (
            f"build generation {self.number} in staging, {before}, with its sources at the positions above and no state"
        )

    def do(self, operation: Operation) -> ActionFacts:
        replayer = operation.open_replayer()
        profile = replayer.profile()
        _check_served(operation, replayer)
        store = new_folder(operation, self)
        if self.last >= 0:
            entry = entry_of(operation, self)
            # The first batch loads the state of the batch before it: an empty version of each store has to exist.
            if profile.stateful:
                run_empty_base(operation, store, entry)
                rename_base(store, self.last + 1)
            else:
                # Without a commit Spark would take the empty batch for an unfinished one, and run it into the output.
                write_log(store, commit_path(self.last), b'v1\n{"nextBatchWatermarkMs":0}')
            # Spark reads the entries of two batches when it starts.
            for batch in range(max(self.last - 1, 0), self.last + 1):
                write_log(store, offset_path(batch), render_offset_entry(entry))
        for start in self.starts:
            _write_log_of(store, start, self.log_of(start))
        return {LAYOUT: profile.as_json(), CODE: replayer.code().digest, PROGRAMS: made_by(replayer.program())}


def _check_served(operation: Operation, replayer: Replayer) -> None:
    """Raises Refused if the batch would fail halfway, or leave rows out."""
    ranges = ranges_of(operation.plan.request)
    if ranges:
        available = StoreAvailability(replayer.served_positions())
        lost = [line for kind, span in ranges for line in kind.unavailable(span, available)]
        refuse_lost(operation, lost, f"; or plan again: {plan_again(operation.plan)}")


def entry_of(operation: Operation, action: StartGeneration) -> OffsetEntry:
    batches = operation.batches
    metadata = batches.offset(batches.batches[-1]).metadata if batches.batches else None
    # The time of the plan: Spark takes ``current_timestamp()`` from it, and each attempt must write the same rows.
    planned_ms = round(datetime.fromisoformat(operation.plan.made_at).timestamp() * 1000)
    # Spark pins the state store's provider and the number of state partitions in the entry (``OffsetSeqMetadata``).
    conf = metadata.conf if metadata is not None else {}
    offsets = tuple(SourceOffset(start.source, start.offset) for start in action.starts)
    return OffsetEntry(1, OffsetMetadata(0, planned_ms, conf), offsets)


def _write_log_of(store: WriteStore, start: SourceStart, log: dict[str, str]) -> None:
    for name, content in log.items():
        write_log(store, source_path(start.source, name), encoded(content))
