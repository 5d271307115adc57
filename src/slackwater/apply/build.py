"""Builds the next generation: the measured recipe of an exact rebuild, step by step.

Every recorded batch keeps its id, its range, its watermark and its boundaries; nothing is renumbered but one empty
base, whose only work is to have Spark lay out schemas and one empty version of every state store.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from slackwater.apply.replayer import Replayed, Replayer
from slackwater.checkpoint.layout import (
    METADATA,
    STATE,
    commit_path,
    offset_path,
    parse_state_file,
    source_path,
)
from slackwater.checkpoint.logs import marks, read_logs
from slackwater.checkpoint.writer import delete_log, rename_log, rename_state_file, write_log
from slackwater.errors import Refused
from slackwater.formats.commit_log import parse_commit_entry, render_commit_entry
from slackwater.formats.compactible import lay_out
from slackwater.formats.kafka_initial_offsets import render_initial_offsets
from slackwater.formats.offset_log import render_offset_entry
from slackwater.model.checkpoint_logs import OffsetEntry, SourceOffset
from slackwater.model.plan import BuildGeneration
from slackwater.plan.past import Past, is_kafka_offset, kafka_span, log_offset, offsets_by_source
from slackwater.storage.protocols import WriteStore

BEFORE_ALL_FILES = '{"logOffset":-1}'


@dataclass(frozen=True, slots=True)
class Building:
    """What a build works with: where, from what past, by which replayer, and whom to tell of each batch."""

    action: BuildGeneration
    store: WriteStore
    past: Past
    replayer: Replayer
    on_batch: Callable[[int], None]


def lay_base(building: Building) -> None:
    """Metadata, source logs and, unless the replay begins at batch 0, an empty state just before the first batch."""
    action, store, past = building.action, building.store, building.past
    write_log(store, METADATA, f'{{"id":"{action.query_id}"}}'.encode())
    _write_sources(building)
    if action.first > action.last:
        _copy_without_state(building)
    elif action.first > 0:
        _run_empty_base(building)
        _rename_base(store, action.first)
        write_log(store, offset_path(action.first - 1), past.history.offsets[action.first - 1].encode())


def replay(building: Building) -> None:
    """Run the recorded batches under their own ids. Raises Refused where Spark does not read what was read before."""
    action, past = building.action, building.past
    for batch in range(action.first, action.last + 1):
        write_log(building.store, offset_path(batch), past.history.offsets[batch].encode())
        replayed = building.replayer.run_pending(action.location, changelog=True)
        _check_replayed(past, batch, replayed)
        building.on_batch(batch)
    _restore_next_watermark(building)


def _write_sources(building: Building) -> None:
    action, store, past = building.action, building.store, building.past
    ends = offsets_by_source(past.offset(action.last)) if action.last >= 0 else {}
    starts = offsets_by_source(past.offset(action.first - 1)) if 0 < action.first <= action.last else {}
    for source, entries in past.history.sources.items():
        last = log_offset(ends.get(source))
        if last is not None:
            lines = {entry: text.split("\n")[1:] for entry, text in entries.items() if entry <= last}
            for name, text in lay_out(lines, last, building.replayer.compact_interval()).items():
                write_log(store, source_path(source, name), text.encode())
            continue
        if action.last < 0 and any('"path"' in text for text in entries.values()):
            continue  # no file was taken yet: the query finds them all as new
        start = starts.get(source)
        if start is not None and is_kafka_offset(start):
            # Without it Spark would ask the broker where to begin, and the base would not be empty.
            write_log(store, source_path(source, "0"), render_initial_offsets(start))
        else:
            for entry, text in entries.items():
                write_log(store, source_path(source, str(entry)), text.encode())


def _copy_without_state(building: Building) -> None:
    """A query without state needs its position alone: the entries of the last two batches."""
    last, history = building.action.last, building.past.history
    for batch in range(max(last - 1, 0), last + 1):
        write_log(building.store, offset_path(batch), history.offsets[batch].encode())
        commit = history.commits.get(
            batch, f'v1\n{{"nextBatchWatermarkMs":{building.past.offset(batch).watermark_ms}}}'
        )
        write_log(building.store, commit_path(batch), commit.encode())


def _run_empty_base(building: Building) -> None:
    before = building.past.offset(building.action.first - 1)
    base = replace(before, offsets=tuple(_empty_range(offset) for offset in before.offsets))
    write_log(building.store, offset_path(0), render_offset_entry(base))
    # A changelog of an empty version would not be the zip that the renaming turns into a snapshot.
    replayed = building.replayer.run_pending(building.action.location, changelog=False)
    if (replayed.batch_id, replayed.input_rows) != (0, 0):
        raise Refused(
            "base-not-empty",
            "The base of the new checkpoint read rows; its range was not empty to this source",
            expected="batch 0 with 0 rows",
            found=f"batch {replayed.batch_id} with {replayed.input_rows} rows",
        )


def _empty_range(offset: SourceOffset) -> SourceOffset:
    """A file source begins before all files, so its empty range ends there; Kafka begins at its initial offsets."""
    return replace(offset, text=BEFORE_ALL_FILES) if log_offset(offset.text) is not None else offset


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


def _check_replayed(past: Past, batch: int, replayed: Replayed) -> None:
    if replayed.batch_id != batch:
        raise Refused(
            "replay-strayed",
            "Spark ran another batch than the recorded one",
            expected=str(batch),
            found=str(replayed.batch_id),
        )
    expected = past.history.input_rows.get(batch)
    if expected is None:
        expected = _kafka_rows(past, batch)
    if expected is not None and expected != replayed.input_rows:
        raise Refused(
            "rows-gone",
            f"Batch {batch} does not read the rows it read before: the source no longer has them",
            expected=f"{expected} rows",
            found=f"{replayed.input_rows} rows",
            hint="restore the source's data; or reset the stream and accept the loss",
        )


def _kafka_rows(past: Past, batch: int) -> int | None:
    """Rows by offsets, where all sources are Kafka's and no progress event told the number."""
    ends = offsets_by_source(past.offset(batch))
    starts = offsets_by_source(past.offset(batch - 1)) if batch - 1 in past.history.offsets else {}
    if (batch > 0 and not starts) or not all(is_kafka_offset(end) for end in ends.values()):
        return None
    return sum(kafka_span(starts.get(source), end) for source, end in ends.items()) if batch > 0 else None


def _restore_next_watermark(building: Building) -> None:
    """Spark loses per-operator maxima at each start, so the watermark after the last batch is the recorded one."""
    last = building.action.last
    recorded = building.past.commit(last)
    if recorded is None:
        return
    commit = parse_commit_entry(building.store.read(commit_path(last)))
    if commit.next_batch_watermark_ms != recorded.next_batch_watermark_ms:
        corrected = replace(commit, next_batch_watermark_ms=recorded.next_batch_watermark_ms)
        write_log(building.store, commit_path(last), render_commit_entry(corrected))


def verify(building: Building) -> None:
    """Read the new checkpoint back. Raises Refused where a range, a watermark or a mark is not the recorded one."""
    action, past = building.action, building.past
    logs, found = read_logs(building.store), marks(building.store)
    expected_state = action.last if building.replayer.profile().stateful and action.first <= action.last else None
    if (found.planned, found.committed) != (action.last, action.last) or (
        expected_state is not None and found.state != expected_state
    ):
        raise Refused(
            "verify-marks",
            "The new checkpoint does not stand where it should",
            expected=f"planned, committed and state {action.last}",
            found=f"planned {found.planned}, committed {found.committed}, state {found.state}",
        )
    for batch in range(max(min(action.first, action.last) - 1, 0), action.last + 1):
        _check_entry(logs.offset(batch), past.offset(batch), batch)


def _check_entry(found: OffsetEntry, recorded: OffsetEntry, batch: int) -> None:
    if (found.offsets, found.watermark_ms) != (recorded.offsets, recorded.watermark_ms):
        raise Refused(
            "verify-range",
            f"Batch {batch} of the new checkpoint has another range or watermark than the recorded one",
            expected=f"{recorded.offsets} at {recorded.watermark_ms}",
            found=f"{found.offsets} at {found.watermark_ms}",
        )
