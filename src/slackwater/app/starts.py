"""Where the sources of a query start at a target, as the plan of a reset records it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from slackwater.app.deriving import reconcile
from slackwater.app.user_files import read_text
from slackwater.app.workspace import Workspace
from slackwater.errors import Refused, UsageError
from slackwater.model.actions import SourceStart
from slackwater.model.plan import Request
from slackwater.model.records import StreamRecord
from slackwater.model.targets import AtBatch, FromFile, LastWritten, PositionTarget
from slackwater.plan.batch_history import BatchHistory, offsets_by_source
from slackwater.plan.targets import parse_offsets, parse_target
from slackwater.recording.history import history_of
from slackwater.recording.snapshot import SnapshotContext, read_snapshot
from slackwater.runtime.positions import resolve
from slackwater.runtime.replay import SparkReplayer
from slackwater.sources.registry import kind_of

RECORDED = "the recorded ranges"


def starts_at(
    workspace: Workspace, stream: StreamRecord, wanted: Request, replayer: SparkReplayer
) -> tuple[SourceStart, ...]:
    """The positions. Raises UsageError (``target``), and Refused for what a source does not have."""
    reconcile(workspace, stream)
    history = history_of(workspace.ledger, stream)
    batches = BatchHistory(history)
    target, offsets = position_target(workspace, stream, batches, wanted.target)
    committed = max((batch for batch in history.commits if batch in history.offsets), default=None)
    current: Mapping[str, str | None] = {} if committed is None else offsets_by_source(batches.offset(committed))
    found = resolve(
        replayer.frame(),
        target,
        current,
        logs=history.sources,
        now_ms=round(time.time() * 1000),
        only_source=wanted.only_source,
        offsets=offsets,
    )
    return tuple(
        SourceStart(
            source,
            position.base.end,
            decoded(position.base.log),
            None if (first := kind_of(position.base.end, {}).first_log(position.base)) is None else decoded(first),
            position.summary,
        )
        for source, position in found.items()
    )


def position_target(
    workspace: Workspace, stream: StreamRecord, batches: BatchHistory, text: str
) -> tuple[PositionTarget, Mapping[str, str] | None]:
    """The target as a position, with the offsets of a file or of a recorded batch. Raises as ``starts_at``."""
    target = parse_target(text)
    if isinstance(target, FromFile):
        return target, parse_offsets(_content(target.file), target.file)
    if isinstance(target, LastWritten):
        written = read_snapshot(SnapshotContext(workspace.ledger, workspace.home), stream).written_or_committed
        return FromFile(RECORDED), _ends(batches, written, text)
    if isinstance(target, AtBatch):
        return FromFile(RECORDED), _ends(batches, target.batch - 1, text)
    return target, None


def _ends(batches: BatchHistory, batch: int, text: str) -> Mapping[str, str]:
    """The recorded ends of a batch."""
    if batch not in batches.history.offsets:
        known = batches.batches
        raise Refused(
            "target-unknown",
            f"Where {text} starts is not recorded",
            expected=f"batch:{known[0] + 1} to batch:{known[-1] + 1}" if known else "earliest, as no batch is recorded",
            found=text,
            hint="earliest, latest, time:... and by:... need no recorded batch",
        )
    ends = offsets_by_source(batches.offset(batch))
    return {source: end for source, end in ends.items() if end is not None}


def _content(file: str) -> str:
    try:
        return read_text(Path(file))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            "target", f"The file of offsets cannot be read: {error}", where=file, hint="offsets:FILE names a JSON file"
        ) from error


def decoded(log: Mapping[str, bytes]) -> dict[str, str]:
    """The files of a source's own log as the strings that a plan has."""
    return {name: content.decode("utf-8", "surrogateescape") for name, content in log.items()}
