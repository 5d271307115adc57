"""The range of a backfill, as its plan records it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from slackwater.app.deriving import reconcile
from slackwater.app.starts import decoded, position_target
from slackwater.app.workspace import Workspace
from slackwater.model.actions import SourceStart
from slackwater.model.plan import Request
from slackwater.model.records import StreamRecord
from slackwater.model.targets import Latest
from slackwater.plan.backfill import live_ranges, of_source, stateful
from slackwater.plan.batch_history import BatchHistory
from slackwater.plan.targets import target_text
from slackwater.recording.executed import executed
from slackwater.recording.history import history_of
from slackwater.recording.snapshot import SnapshotContext, read_snapshot
from slackwater.runtime.positions import resolve
from slackwater.runtime.ranges import Claims, range_between
from slackwater.runtime.replay import SparkReplayer
from slackwater.runtime.source_seen import Position


def with_range(workspace: Workspace, stream: StreamRecord, wanted: Request, replayer: SparkReplayer) -> Request:
    """The request with what its batch reads: where each source starts and ends.

    Raises UsageError (``target``), and Refused for a query with state and for what a source does not have.
    """
    if replayer.profile().stateful:
        raise stateful(stream.full_name)
    reconcile(workspace, stream)
    batches = BatchHistory(history_of(workspace.ledger, stream))
    live = live_ranges(read_snapshot(SnapshotContext(workspace.ledger, workspace.home), stream), batches)
    current = {source: span.end for source, span in live.items()}

    def positions(text: str) -> Mapping[str, Position]:
        target, offsets = position_target(workspace, stream, batches, text)
        return resolve(
            replayer.frame(),
            target,
            current,
            logs=batches.history.sources,
            now_ms=round(time.time() * 1000),
            only_source=wanted.only_source,
            offsets=offsets,
        )

    starts, ends = positions(wanted.target), positions(wanted.to or target_text(Latest()))
    read = executed(workspace.ledger, stream)
    found = {
        source: range_between(
            start,
            ends[source],
            Claims(live[source], of_source(read, source)),
            interval=replayer.compact_interval(),
            to_next=wanted.to is None,
        )
        for source, start in starts.items()
    }
    return replace(
        wanted,
        starts=tuple(
            SourceStart(source, one.start, decoded(one.log), None, f"source {source}: {one.summary}")
            for source, one in found.items()
        ),
        ends={source: one.end for source, one in found.items()},
    )
