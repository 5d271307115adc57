"""Builds the next generation from the checkpoint of another one: its state as it is, its ranges as they are recorded.

No batch is run, so that neither Spark nor the pipeline file is needed, and any state can be kept.
"""

from __future__ import annotations

import shutil

from slackwater.apply.actions.base import write_entries, write_sources
from slackwater.apply.actions.facts import LAYOUT, ActionFacts
from slackwater.apply.operation import Operation
from slackwater.checkpoint.layout import METADATA
from slackwater.checkpoint.state_copy import copy_state
from slackwater.checkpoint.writer import write_log
from slackwater.formats.compactible import DEFAULT_INTERVAL
from slackwater.model.actions import CopyGeneration
from slackwater.storage.local import LocalStore
from slackwater.storage.open import open_read_store

COMPACT_INTERVAL = "spark.sql.streaming.fileSource.log.compactInterval"


def do(operation: Operation, action: CopyGeneration) -> ActionFacts:
    """Metadata, source logs, the entries up to the last batch, and the state after it."""
    folder = operation.checkpoint(action.number)
    # Only reached after the journal records that the folder is this operation's own.
    if folder.exists():
        shutil.rmtree(folder)
    generation = operation.ledger.generation(operation.plan.stream, action.source)
    store = LocalStore(folder)
    write_log(store, METADATA, f'{{"id":"{action.query_id}"}}'.encode())
    write_sources(store, action, operation.batches, _compact_interval(operation), {})
    oldest = _oldest_needed(operation, action)
    write_entries(store, operation.batches, oldest, action.last)
    if action.state is not None:
        # Where the ledger has it: a pipeline can have adopted a checkpoint, so that it is in no home.
        copy_state(open_read_store(generation.location), store, action.state)
    return {LAYOUT: dict(generation.layout or {})}


def _oldest_needed(operation: Operation, action: CopyGeneration) -> int:
    """The commits of the checkpoint format 2 name the state files of their batches: all that have state stay."""
    if action.state is None:
        return max(action.last - 1, 0)
    kept = (batch for batch in operation.history.commits if batch in operation.history.offsets)
    return min([batch for batch in kept if batch <= action.last], default=action.last)


def _compact_interval(operation: Operation) -> int:
    """As the newest run had it set."""
    run = operation.ledger.last_run(operation.plan.stream)
    text = ((run.settings if run is not None else None) or {}).get(COMPACT_INTERVAL, "")
    return int(text) if text.isascii() and text.isdigit() and int(text) > 0 else DEFAULT_INTERVAL
