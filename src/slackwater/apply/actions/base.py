"""What all actions that start a new checkpoint share: its folder, the logs of its sources, and its removal."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace

from slackwater.apply.operation import Operation
from slackwater.checkpoint.layout import STATE, commit_path, offset_path, parse_state_file, source_path
from slackwater.checkpoint.writer import delete_log, rename_log, rename_state_file, write_log
from slackwater.errors import Refused
from slackwater.formats.offset_log import render_offset_entry
from slackwater.model.actions import Base, BuildGeneration, CopyGeneration, RemoveGeneration
from slackwater.model.checkpoint_logs import OffsetEntry
from slackwater.model.plan import Plan
from slackwater.plan.batch_history import BatchHistory, offsets_by_source
from slackwater.plan.words import plan_again
from slackwater.recording.stream_files import write_stream_file_of
from slackwater.storage.protocols import WriteStore

LOST_SHOWN = 3


def base_of(plan: Plan, number: int) -> tuple[int, Base]:
    """The action that starts the checkpoint of a generation, with its index."""
    return next(
        (index, one) for index, one in enumerate(plan.actions) if isinstance(one, Base) and one.number == number
    )


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


def refuse_lost(operation: Operation, lost: Sequence[str], hint: str) -> None:
    """Raises Refused where the source has lost something that has to be read."""
    if lost:
        more = f" and {len(lost) - LOST_SHOWN} more" if len(lost) > LOST_SHOWN else ""
        raise Refused(
            "source-rows-lost",
            "The source no longer has rows that have to be read",
            where=f"stream {operation.plan.stream}",
            found=", ".join(lost[:LOST_SHOWN]) + more,
            hint=hint,
        )


def remove(operation: Operation, inverse: RemoveGeneration) -> None:
    """Remove what the operation has built; the journal has the record."""
    folder = operation.checkpoint(inverse.number)
    if folder.exists():
        shutil.rmtree(folder)
    operation.ledger.remove_generation(operation.plan.stream, inverse.number)
    write_stream_file_of(operation.home, operation.ledger, operation.plan.stream)


def write_sources(
    store: WriteStore,
    action: BuildGeneration | CopyGeneration,
    batches: BatchHistory,
    interval: int,
    starts: Mapping[str, str | None],
) -> None:
    """The own log of each source up to where the new checkpoint will be.

    ``starts`` are the positions of an empty base, by source, and empty without one: the base has initial offsets.
    """
    newest = action.last if action.pending is None else action.pending
    ends = offsets_by_source(batches.offset(newest)) if newest >= 0 else {}
    for source, log in batches.history.sources.items():
        end = ends.get(source)
        kind = batches.kind(source, end)
        files = dict(kind.log_until(end, log, interval))
        base = kind.empty_base(starts[source]) if source in starts else None
        files.update(base.log if base is not None else {})
        for name, content in files.items():
            write_log(store, source_path(source, name), content)


def write_positions(store: WriteStore, batches: BatchHistory, batch: int, *, alone: bool) -> None:
    """The recorded entry of a batch; ``alone``: also as that of the batch before, as Spark reads two when it starts."""
    entry = batches.history.offsets[batch].encode("utf-8", "surrogateescape")
    for number in range(max(batch - 1, 0) if alone else batch, batch + 1):
        write_log(store, offset_path(number), entry)


def write_entries(store: WriteStore, batches: BatchHistory, first: int, last: int) -> None:
    """The entries of committed batches, as they are recorded; a commit that is not has the batch's own watermark."""
    history = batches.history
    if last >= 0 and last - 1 not in history.offsets:
        # After a reset nothing of the batches before its first one is known.
        write_positions(store, batches, last, alone=True)
    for batch in range(first, last + 1):
        if batch not in history.offsets:
            continue
        write_log(store, offset_path(batch), history.offsets[batch].encode("utf-8", "surrogateescape"))
        commit = batches.commit_text(batch) or f'v1\n{{"nextBatchWatermarkMs":{batches.offset(batch).watermark_ms}}}'
        write_log(store, commit_path(batch), commit.encode("utf-8", "surrogateescape"))


def run_empty_base(operation: Operation, store: WriteStore, entry: OffsetEntry) -> None:
    """Run an empty batch 0 at the positions of ``entry``, so that Spark lays out an empty state of each store."""
    batches, replayer = operation.batches, operation.open_replayer()
    bases = {one.source: batches.kind(one.source, one.text).empty_base(one.text) for one in entry.offsets}
    empty = tuple(
        replace(one, text=base.end) if (base := bases[one.source]) is not None else one for one in entry.offsets
    )
    for source, base in bases.items():
        for name, content in (base.log if base is not None else {}).items():
            write_log(store, source_path(source, name), content)
    write_log(store, offset_path(0), render_offset_entry(replace(entry, offsets=empty)))
    # A changelog of an empty version would not be the zip that the renaming turns into a snapshot.
    replayed = replayer.run_pending(store.location, changelog=False)
    if (replayed.batch_id, replayed.input_rows) != (0, 0):
        raise Refused(
            "base-not-empty",
            "The base of the new checkpoint read rows; its range was not empty for this source",
            where=store.location,
            expected="batch 0 with 0 rows",
            found=f"batch {replayed.batch_id} with {replayed.input_rows} rows",
            hint="a rebuild from batch 0 needs no base: "
            f"slackwater plan rebuild {operation.plan.stream} --retention all",
        )


def rename_base(store: WriteStore, first: int) -> None:
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
