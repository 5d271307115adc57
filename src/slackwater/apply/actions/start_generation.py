"""Builds a generation whose sources start at positions that were chosen, with empty state: of a reset or backfill."""

from __future__ import annotations

import shutil
from datetime import datetime

from slackwater.apply.actions.base import refuse_lost, rename_base, run_empty_base
from slackwater.apply.actions.facts import CODE, LAYOUT, ActionFacts
from slackwater.apply.operation import Operation
from slackwater.apply.replayer import Replayer
from slackwater.checkpoint.layout import METADATA, commit_path, offset_path, source_path
from slackwater.checkpoint.writer import write_log
from slackwater.formats.offset_log import render_offset_entry
from slackwater.model.actions import SourceStart, StartGeneration
from slackwater.model.checkpoint_logs import OffsetEntry, OffsetMetadata, SourceOffset
from slackwater.plan.backfill import ranges_of
from slackwater.plan.words import plan_again
from slackwater.recording.reach import StoreReach
from slackwater.sources.opaque import encoded
from slackwater.storage.local import LocalStore


def do(operation: Operation, action: StartGeneration) -> ActionFacts:
    """Metadata, source logs and, where the first batch is not 0, an empty batch before it at the positions."""
    folder = operation.checkpoint(action.number)
    # Only reached after the journal records that the folder is this operation's own.
    if folder.exists():
        shutil.rmtree(folder)
    replayer, store = operation.open_replayer(), LocalStore(folder)
    profile = replayer.profile()
    _check_served(operation, replayer)
    write_log(store, METADATA, f'{{"id":"{action.query_id}"}}'.encode())
    if action.last >= 0:
        entry = entry_of(operation, action)
        if profile.stateful:
            run_empty_base(operation, store, entry)
            rename_base(store, action.last + 1)
        else:
            write_log(store, commit_path(action.last), b'v1\n{"nextBatchWatermarkMs":0}')
        # Spark reads the entries of two batches when it starts.
        for batch in range(max(action.last - 1, 0), action.last + 1):
            write_log(store, offset_path(batch), render_offset_entry(entry))
    for start in action.starts:
        _write_log_of(store, start, action.log_of(start))
    return {LAYOUT: profile.as_json(), CODE: replayer.code().digest}


def _check_served(operation: Operation, replayer: Replayer) -> None:
    """The whole range of a backfill must still exist: its batch would fail in the middle, or leave rows out."""
    ranges = ranges_of(operation.plan.request)
    if ranges:
        reach = StoreReach(replayer.earliest_offsets())
        lost = [line for kind, span in ranges for line in kind.unavailable(span, reach)]
        refuse_lost(operation, lost, f"nothing was changed; plan again: {plan_again(operation.plan)}")


def entry_of(operation: Operation, action: StartGeneration) -> OffsetEntry:
    """The entry of the empty batch, under the settings that the newest recorded batch was planned with."""
    batches = operation.batches
    metadata = batches.offset(batches.batches[-1]).metadata if batches.batches else None
    planned_ms = round(datetime.fromisoformat(operation.plan.made_at).timestamp() * 1000)
    conf = metadata.conf if metadata is not None else {}
    offsets = tuple(SourceOffset(start.source, start.offset) for start in action.starts)
    return OffsetEntry(1, OffsetMetadata(0, planned_ms, conf), offsets)


def _write_log_of(store: LocalStore, start: SourceStart, log: dict[str, str]) -> None:
    for name, content in log.items():
        write_log(store, source_path(start.source, name), encoded(content))
