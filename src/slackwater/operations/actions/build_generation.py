"""Builds the base of the next generation, the start of an exact rebuild.

Only an empty base is renumbered: Spark runs it to lay out schemas and an empty version of every state store.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from slackwater.core.errors import Refused
from slackwater.core.profile import QueryProfile
from slackwater.core.program import made_by
from slackwater.ledger.recording.batch_history import BatchHistory, offsets_by_source
from slackwater.ledger.recording.snapshot import profile_of
from slackwater.ledger.recording.source_availability import StoreAvailability
from slackwater.operations.action import ActionFacts
from slackwater.operations.actions.common.base import (
    Base,
    new_folder,
    refuse_lost,
    rename_base,
    run_empty_base,
    write_entries,
    write_positions,
    write_sources,
)
from slackwater.operations.actions.common.facts import CODE, LAYOUT, PROGRAMS
from slackwater.operations.apply.operation import Operation
from slackwater.operations.apply.preconditions import check_restorable, compared_programs
from slackwater.operations.apply.replayer import Replayer
from slackwater.operations.plan.basis import bounds_of, check_reproducible
from slackwater.operations.plan.contributing import first_contributing
from slackwater.operations.plan.replaced import refuse_replaced
from slackwater.operations.plan.words import duration, plan_again


@dataclass(frozen=True, slots=True)
class BuildGeneration(Base):
    """``pending``: the batch after ``last``, planned with its recorded range."""

    number: int
    query_id: str
    first: int
    last: int
    pending: int | None
    kind: Literal["build-generation"] = "build-generation"

    needs = ("generation", "planned", "committed", "written", "history", "pipeline", "source-files")

    @property
    def planned(self) -> int:
        return self.last if self.pending is None else self.pending

    def text(self) -> str:
        return f"build generation {self.number} in staging, with the query's id {self.query_id}"

    def do(self, operation: Operation) -> ActionFacts:
        replayer, batches = operation.open_replayer(), operation.batches
        profile = replayer.profile()
        _check_query(operation, batches, replayer, profile)
        _check_served(operation, self, replayer)
        store = new_folder(operation, self)
        # After a reset nothing may have been written yet: there is no batch to replay, but an empty state to lay out.
        on_base = self.first > 0 and (profile.stateful or self.first <= self.last)
        starts = offsets_by_source(batches.offset(self.first - 1)) if on_base else {}
        write_sources(store, self.planned, batches, replayer.compact_interval(), starts)
        if self.first > self.last and not on_base:
            # ``MicroBatchExecution.populateStartOffsets`` reads the newest entry and the one before it.
            write_entries(store, batches, max(self.last - 1, 0), self.last)
        elif on_base:
            run_empty_base(operation, store, batches.offset(self.first - 1))
            rename_base(store, self.first)
            write_positions(store, batches, self.first - 1, alone=self.first > self.last)
        return {LAYOUT: profile.as_json(), CODE: replayer.code().digest, PROGRAMS: made_by(replayer.program())}


def _check_query(operation: Operation, batches: BatchHistory, replayer: Replayer, profile: QueryProfile) -> None:
    """Raises Refused if the upgraded query needs older batches: a longer retention, or other rows."""
    facts = operation.plan.facts
    if facts.target < 0:
        # From batch 0 on nothing is replayed: the batches run again with their output.
        return
    plan = operation.plan
    check_reproducible(profile, operation.stream, plan.request)
    program = replayer.program()
    stream = operation.stream._replace(session=operation.session)
    check_restorable(operation.ledger, stream, facts.target, program, plan.pipeline_file)
    recorded = profile_of(operation.ledger.generation(operation.stream.full_name, operation.stream.current_generation))
    given = plan.request.retention_ms
    state = bounds_of(profile, recorded, operation.stream.output_mode, given)
    programs = compared_programs(operation.ledger, operation.stream, program)
    code = replace(replayer.code(), programs=programs)
    needed = first_contributing(batches, facts.target, state, code)
    if needed < facts.contributing:
        runs = batches.history.runs
        same_rows = all(code.reads_as(runs.get(batch)) for batch in batches.history.offsets)
        raise Refused(
            "retention-longer",
            "The present query needs older batches than the plan counted on",
            where=f"stream {operation.plan.stream}",
            expected=f"batches from {needed}",
            found=f"batches from {facts.contributing}",
            # Where a retention was asked for, or equal files read other rows, the next plan would be the same with it.
            hint="plan again: "
            + plan_again(plan, retention=duration(state.retention_ms if given is None and same_rows else None)),
        )


def _check_served(operation: Operation, action: BuildGeneration, replayer: Replayer) -> None:
    """Raises Refused for missing input, which Spark would leave out, or fail on late."""
    batches, available = operation.batches, StoreAvailability(replayer.served_positions())
    missing = batches.missing_for(action.first, action.last, available, operation.plan.request.ranges)
    refuse_lost(operation, missing)
    replaced = batches.replaced(action.first, action.last, available)
    refuse_replaced(operation.plan.stream, replaced, "nothing in use was changed")
