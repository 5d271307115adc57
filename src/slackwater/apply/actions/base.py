"""What all actions that start a new checkpoint share: its folder, the logs of its sources, and its removal."""

from __future__ import annotations

import shutil

from slackwater.apply.operation import Operation
from slackwater.checkpoint.layout import commit_path, offset_path, source_path
from slackwater.checkpoint.writer import write_log
from slackwater.errors import Refused
from slackwater.model.plan import Base, BuildGeneration, Plan, RemoveGeneration
from slackwater.plan.batch_history import BatchHistory, offsets_by_source
from slackwater.plan.words import plan_again
from slackwater.recording.stream_files import write_stream_file_of
from slackwater.storage.protocols import WriteStore


def base_of(plan: Plan) -> tuple[int, Base]:
    """The action that starts the new checkpoint, with its index."""
    return next((index, one) for index, one in enumerate(plan.actions) if isinstance(one, Base))


def check_absent(operation: Operation, action: Base) -> None:
    """Raises Refused where the generation's folder exists: an operation writes only into what it has made itself."""
    folder = operation.checkpoint(action.number)
    if folder.exists():
        raise Refused(
            "generation-exists",
            f"The checkpoint of generation {action.number} exists already, and this operation did not make it",
            where=str(folder),
            expected="no such folder",
            hint=f"plan again: {plan_again(operation.plan)}",
        )


def remove(operation: Operation, inverse: RemoveGeneration) -> None:
    """Remove what the operation has built; the journal has the record."""
    folder = operation.checkpoint(inverse.number)
    if folder.exists():
        shutil.rmtree(folder)
    operation.ledger.remove_generation(operation.plan.stream, inverse.number)
    write_stream_file_of(operation.home, operation.ledger, operation.plan.stream)


def write_sources(store: WriteStore, action: Base, batches: BatchHistory, interval: int) -> None:
    """The own log of each source up to where the new checkpoint will be, with the initial offsets of an empty base."""
    newest = action.last if action.pending is None else action.pending
    ends = offsets_by_source(batches.offset(newest)) if newest >= 0 else {}
    first = action.first if isinstance(action, BuildGeneration) else action.last + 1
    starts = offsets_by_source(batches.offset(first - 1)) if 0 < first <= action.last else {}
    for source, log in batches.history.sources.items():
        end = ends.get(source)
        kind = batches.kind(source, end)
        files = dict(kind.log_until(end, log, interval))
        base = kind.empty_base(starts.get(source)) if source in starts else None
        if base is not None:
            files.update(base.log)
        for name, content in files.items():
            write_log(store, source_path(source, name), content)


def write_entries(store: WriteStore, batches: BatchHistory, first: int, last: int) -> None:
    """The entries of committed batches, as they are recorded; a commit that is not has the batch's own watermark."""
    history = batches.history
    for batch in range(first, last + 1):
        if batch not in history.offsets:
            continue
        write_log(store, offset_path(batch), history.offsets[batch].encode("utf-8", "surrogateescape"))
        commit = history.commits.get(batch, f'v1\n{{"nextBatchWatermarkMs":{batches.offset(batch).watermark_ms}}}')
        write_log(store, commit_path(batch), commit.encode("utf-8", "surrogateescape"))
