"""Builds the base of the next generation: the first steps of the measured procedure of an exact rebuild.

Every recorded batch keeps its id, its range, its watermark and its boundaries; nothing is renumbered but one empty
base, whose only work is to have Spark lay out schemas and one empty version of every state store.
"""

from __future__ import annotations

import shutil

from slackwater.apply.actions.base import (
    refuse_lost,
    rename_base,
    run_empty_base,
    write_entries,
    write_positions,
    write_sources,
)
from slackwater.apply.actions.facts import CODE, LAYOUT, ActionFacts
from slackwater.apply.operation import Operation
from slackwater.apply.replayer import Replayer
from slackwater.checkpoint.layout import METADATA
from slackwater.checkpoint.writer import write_log
from slackwater.errors import Refused
from slackwater.model.actions import BuildGeneration
from slackwater.model.profile import QueryProfile
from slackwater.plan.batch_history import BatchHistory, offsets_by_source
from slackwater.plan.bounds import check_reproducible
from slackwater.plan.contributing import Code, StateBounds, first_contributing
from slackwater.plan.words import duration, plan_again
from slackwater.recording.reach import StoreReach
from slackwater.storage.local import LocalStore


def do(operation: Operation, action: BuildGeneration) -> ActionFacts:
    """Metadata, source logs and, unless the replay starts at batch 0, an empty state just before the first batch."""
    folder = operation.checkpoint(action.number)
    # Only reached after the journal records that the folder is this operation's own.
    if folder.exists():
        shutil.rmtree(folder)
    replayer, batches, store = operation.open_replayer(), operation.batches, LocalStore(folder)
    profile = replayer.profile()
    _check_query(operation, batches, profile, replayer.code())
    _check_served(operation, action, replayer)
    write_log(store, METADATA, f'{{"id":"{action.query_id}"}}'.encode())
    # After a reset nothing may have been written yet: there is no batch to replay, but an empty state to lay out.
    on_base = action.first > 0 and (profile.stateful or action.first <= action.last)
    starts = offsets_by_source(batches.offset(action.first - 1)) if on_base else {}
    write_sources(store, action, batches, replayer.compact_interval(), starts)
    if action.first > action.last and not on_base:
        write_entries(store, batches, max(action.last - 1, 0), action.last)
    elif on_base:
        run_empty_base(operation, store, batches.offset(action.first - 1))
        rename_base(store, action.first)
        write_positions(store, batches, action.first - 1, alone=action.first > action.last)
    return {LAYOUT: profile.as_json(), CODE: replayer.code().digest}


def _check_query(operation: Operation, batches: BatchHistory, profile: QueryProfile, code: Code) -> None:
    """The upgraded query may need older batches than the plan counted on: a longer retention, or other rows read."""
    facts = operation.plan.facts
    check_reproducible(profile, operation.plan.stream)
    if facts.target < 0:
        return
    given = operation.plan.request.retention_ms
    retention = profile.retention_ms if given is None else given
    state = StateBounds(profile.stateful or given is not None, retention, facts.delay_ms)
    needed = first_contributing(batches, facts.target, state, code)
    if needed < facts.contributing:
        raise Refused(
            "retention-longer",
            "The present query needs older batches than the plan counted on",
            where=f"stream {operation.plan.stream}",
            expected=f"batches from {needed}",
            found=f"batches from {facts.contributing}",
            hint=plan_again(operation.plan, retention=duration(retention)),
        )


def _check_served(operation: Operation, action: BuildGeneration, replayer: Replayer) -> None:
    """What is read again, now or after a cut, must still exist: Spark would leave it out, or fail late."""
    batches, reach = operation.batches, StoreReach(replayer.earliest_offsets())
    missing = batches.missing_for(action.first, action.last, reach, operation.plan.request.ranges)
    refuse_lost(operation, missing, "restore the source's data; nothing was changed")
