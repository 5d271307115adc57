"""Builds the base of the next generation: the first steps of the measured procedure of an exact rebuild.

Every recorded batch keeps its id, its range, its watermark and its boundaries; nothing is renumbered but one empty
base, whose only work is to have Spark lay out schemas and one empty version of every state store.
"""

from __future__ import annotations

import shutil
from dataclasses import replace

from slackwater.apply.actions.base import write_entries, write_sources
from slackwater.apply.actions.facts import CODE, LAYOUT, ActionFacts
from slackwater.apply.operation import Operation
from slackwater.apply.replayer import Replayer
from slackwater.checkpoint.layout import METADATA, STATE, commit_path, offset_path, parse_state_file
from slackwater.checkpoint.writer import delete_log, rename_log, rename_state_file, write_log
from slackwater.errors import Refused
from slackwater.formats.offset_log import render_offset_entry
from slackwater.model.plan import BuildGeneration
from slackwater.model.profile import QueryProfile
from slackwater.plan.batch_history import BatchHistory
from slackwater.plan.bounds import check_reproducible
from slackwater.plan.contributing import Code, StateBounds, first_contributing
from slackwater.plan.words import ALL, duration, plan_again
from slackwater.recording.reach import StoreReach
from slackwater.storage.local import LocalStore
from slackwater.storage.protocols import WriteStore

SHOWN = 3


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
    write_sources(store, action, batches, replayer.compact_interval())
    if action.first > action.last:
        write_entries(store, batches, max(action.last - 1, 0), action.last)
    elif action.first > 0:
        _run_empty_base(operation, store, action, replayer)
        _rename_base(store, action.first)
        entry = batches.history.offsets[action.first - 1]
        write_log(store, offset_path(action.first - 1), entry.encode("utf-8", "surrogateescape"))
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
    missing = batches.missing_for(action.first, action.last, reach)
    if missing:
        more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
        raise Refused(
            "source-rows-lost",
            "The source no longer has rows that have to be read again",
            where=f"stream {operation.plan.stream}",
            found=", ".join(missing[:SHOWN]) + more,
            hint="restore the source's data; nothing was changed",
        )


def _run_empty_base(operation: Operation, store: WriteStore, action: BuildGeneration, replayer: Replayer) -> None:
    batches = operation.batches
    before = batches.offset(action.first - 1)
    ends = {
        offset.source: batches.kind(offset.source, offset.text).empty_base(offset.text) for offset in before.offsets
    }
    empty = tuple(
        replace(offset, text=base.end) if (base := ends[offset.source]) is not None else offset
        for offset in before.offsets
    )
    write_log(store, offset_path(0), render_offset_entry(replace(before, offsets=empty)))
    # A changelog of an empty version would not be the zip that the renaming turns into a snapshot.
    replayed = replayer.run_pending(store.location, changelog=False)
    if (replayed.batch_id, replayed.input_rows) != (0, 0):
        raise Refused(
            "base-not-empty",
            "The base of the new checkpoint read rows; its range was not empty for this source",
            where=store.location,
            expected="batch 0 with 0 rows",
            found=f"batch {replayed.batch_id} with {replayed.input_rows} rows",
            hint=f"a rebuild from batch 0 needs no base; plan again: {plan_again(operation.plan, retention=ALL)}",
        )


def _rename_base(store: WriteStore, first: int) -> None:
    """Version 1 of each state store becomes version ``first``, and batch 0 becomes the batch before ``first``."""
    for folder in [folder for folder in store.folders(STATE) if "/_" not in folder.path]:
        for name in folder.files:
            state_file = parse_state_file(name)
            if state_file is not None and state_file.version == 1 and first > 1:
                kind = "snapshot" if state_file.kind == "delta" else state_file.kind
                unique = f"_{state_file.unique_id}" if state_file.unique_id else ""
                rename_state_file(store, f"{folder.path}/{name}", f"{folder.path}/{first}{unique}.{kind}")
    if first > 1:
        rename_log(store, commit_path(0), commit_path(first - 1))
    delete_log(store, offset_path(0))
