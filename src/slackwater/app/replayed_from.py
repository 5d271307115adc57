"""The first batch that a replay processes again, as its plan records it: by its id."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from slackwater.app.deriving import reconcile
from slackwater.app.starts import position_target
from slackwater.app.workspace import Workspace
from slackwater.model.plan import Request
from slackwater.model.records import StreamRecord
from slackwater.model.units import iso_text
from slackwater.plan.batch_history import BatchHistory
from slackwater.plan.first_batch import FirstBatch, planned_ms
from slackwater.plan.words import BATCH, EARLIEST, LAST_WRITTEN
from slackwater.recording.history import history_of
from slackwater.recording.snapshot import SnapshotContext, read_snapshot


def with_first_batch(
    workspace: Workspace, stream: StreamRecord, wanted: Request, say: Callable[[str], None]
) -> Request:
    """The request with a batch in place of a time or a position: it must mean the same when the plan is applied.

    Raises UsageError (``target``) for what names no batch, Refused for what is not recorded.
    """
    if wanted.target in {LAST_WRITTEN, EARLIEST} or wanted.target.startswith(BATCH):
        return wanted
    reconcile(workspace, stream)
    batches = BatchHistory(history_of(workspace.ledger, stream))
    target, offsets = position_target(workspace, stream, batches, wanted.target)
    written = read_snapshot(SnapshotContext(workspace.ledger, workspace.home), stream).written_or_committed
    now_ms = round(time.time() * 1000)
    batch = FirstBatch(stream.full_name, batches, written, target, now_ms, offsets or {}).find()
    say(f"{wanted.target}: batch {batch} is the first; it was planned at {iso_text(planned_ms(batches, batch))}")
    return replace(wanted, target=f"{BATCH}{batch}")
