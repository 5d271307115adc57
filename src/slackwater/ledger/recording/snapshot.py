"""Makes the snapshot of a stream in one pass over ledger, checkpoint and output; nothing is written."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from slackwater.checkpoint.damage import FoundDamage, cheap_damage, thorough_damage
from slackwater.checkpoint.logs import CheckpointLogs, marks_of_inventory
from slackwater.checkpoint.no_data_batch import NO_DATA_BATCHES, no_data_entry
from slackwater.checkpoint.opened import OpenedCheckpoint, open_checkpoint
from slackwater.core.checkpoint_logs import OffsetEntry
from slackwater.core.errors import FormatError
from slackwater.core.marks import NONE_YET, Marks
from slackwater.core.profile import QueryProfile
from slackwater.core.records import GenerationRecord, RunRecord, StreamRecord
from slackwater.core.snapshot import Recorded, Snapshot
from slackwater.formats.offset_log import parse_offset_entry
from slackwater.ledger.home.home import Home
from slackwater.ledger.home.identity import Place, place_of
from slackwater.ledger.home.stream_file import read_stream_file
from slackwater.ledger.lease.view import view_of
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.lineage import INPUT_WATERMARKS, SINK, SOURCES
from slackwater.ledger.recording.output_seen import Expected, look_at_output
from slackwater.ledger.recording.source_availability import StoreAvailability
from slackwater.sources import kind_of
from slackwater.sources.common.contract import SourceRange
from slackwater.storage.open import open_read_store


@dataclass(frozen=True, slots=True)
class SnapshotContext:
    """What a snapshot is read from. ``thorough`` reads every file of the marks; ``own_lease``: the caller holds it.

    ``starting`` reads all state that the next start reads. ``place`` is where the home is, for several streams of one;
    else it is looked up.
    """

    ledger: Ledger
    home: Home
    thorough: bool = False
    own_lease: bool = False
    starting: bool = False
    place: Callable[[], Place] | None = None


def read_snapshot(context: SnapshotContext, stream: StreamRecord) -> Snapshot:
    """A snapshot of a stream. Raises OSError where a store cannot be reached."""
    snapshot, _ = look_at_stream(context, stream)
    return snapshot


def look_at_stream(context: SnapshotContext, stream: StreamRecord) -> tuple[Snapshot, OpenedCheckpoint]:
    """A snapshot of a stream, and the one walk of its checkpoint that it is from. Raises as ``read_snapshot``."""
    ledger, name = context.ledger, stream.full_name
    # The lease first: a run that ends meanwhile is then seen with its end, and never as killed.
    lease = view_of(ledger.lease(name), ledger.now_ms())
    holder = lease.record.purpose if lease.state == "held" and lease.record and not context.own_lease else None
    run = ledger.last_run(name)
    generation = ledger.generation(name, stream.current_generation)
    profile = profile_of(generation)
    source_logs = profile.logs_of_sources if profile is not None else {}
    opened = open_checkpoint(open_read_store(generation.location))
    identifier = stream_id(context.home, stream)
    logs = opened.logs
    marks = marks_of_inventory(logs, opened.inventory)
    recorded = _recorded(ledger, stream, marks)
    expected = _expected(marks, recorded, generation)
    written, output = look_at_output(
        stream.sink,
        identifier,
        expected,
        thorough=context.thorough,
        recorded=ledger.lines(name, SINK) if context.thorough else {},
        query_id=generation.query_id or logs.query_id,
    )
    marks = replace(marks, written=written, pending_no_data=_no_data_batch(logs, marks, stream, profile, run))
    planned = _planned_entry(logs, marks)
    place = place_of(context.home) if context.place is None else context.place()
    found = _damage(opened, marks, source_logs, thorough=context.thorough, all_state=context.starting)
    snapshot = Snapshot(
        stream=replace(stream, id=identifier),
        generation=generation,
        marks=marks,
        recorded=recorded,
        output=output,
        profile=profile,
        planned_entry=planned,
        damage=found.damage,
        unread_state=found.unread,
        missing_files=_missing_files(ledger, stream, logs, marks, planned, source_logs=source_logs),
        operation=ledger.open_operation(name),
        holder=holder,
        last_run=run,
        last_refusal=ledger.last_refusal(name),
        home=place.place,
        home_was=place.was,
        code_file=stream.pipeline_file or _code_of_operations(ledger, name),
        inputs_recorded=frozenset(ledger.entries(name, INPUT_WATERMARKS)),
    )
    return snapshot, opened


def _code_of_operations(ledger: Ledger, stream: str) -> str:
    """The pipeline file of the newest plan for a watched query that had one."""
    for operation in reversed(ledger.operations(stream)):
        files = ledger.operation_files(operation.id)
        try:
            found = json.loads(files.plan)["pipeline_file"] if files is not None else ""
        except (ValueError, LookupError, TypeError):
            continue
        if isinstance(found, str) and found:
            return found
    return ""


def _damage(
    opened: OpenedCheckpoint, marks: Marks, source_logs: Mapping[str, str], *, thorough: bool, all_state: bool
) -> FoundDamage:
    """Damage of a checkpoint that holds a batch; one that does not is lost or new, which the marks show."""
    if marks.planned < 0:
        return FoundDamage()
    if thorough:
        return thorough_damage(opened, source_logs=source_logs)
    return cheap_damage(opened, all_state=all_state, source_logs=source_logs)


def profile_of(generation: GenerationRecord) -> QueryProfile | None:
    """What the ledger recorded of the query's plan, ``None`` where no run did."""
    layout = generation.layout
    return QueryProfile.from_json(layout) if layout and "operators" in layout else None


def _no_data_batch(
    logs: CheckpointLogs, marks: Marks, stream: StreamRecord, profile: QueryProfile | None, run: RunRecord | None
) -> int | None:
    # Only operators with state ask for batches without data; where they are unknown, any state counts as one that does.
    if profile is None and marks.state is None:
        return None
    settings = (run.settings if run is not None else None) or {}
    enabled = settings.get(NO_DATA_BATCHES, "true") != "false"
    # Whether there is such a batch does not depend on the time.
    entry = no_data_entry(logs, profile, stream.output_mode, enabled=enabled, now_ms=0)
    return marks.planned + 1 if entry is not None else None


def _planned_entry(logs: CheckpointLogs, marks: Marks) -> OffsetEntry | None:
    return logs.newest_offset if marks.next_is_planned and marks.next_batch == marks.planned else None


def _recorded(ledger: Ledger, stream: StreamRecord, marks: Marks) -> Recorded:
    name, following = stream.full_name, marks.next_batch
    entry = ledger.lines(name, "offsets", following, following).get(following)
    mark = ledger.last_sink_mark(name)
    return Recorded(
        planned=ledger.newest_entry(name, "offsets"),
        committed=ledger.newest_entry(name, "commits"),
        # An output without a log of files is recorded by its marks only.
        shown=max(ledger.newest_entry(name, SINK), mark.written if mark is not None else NONE_YET),
        next_entry=_parsed(entry) if entry is not None else None,
    )


def _expected(marks: Marks, recorded: Recorded, generation: GenerationRecord) -> Expected:
    """What the output should show. What came before a reset or a backfill counts no longer."""
    if marks.planned < 0:
        finished, planned = recorded.committed, recorded.planned
    else:
        finished, planned = marks.next_batch - 1, marks.planned
    return Expected(finished if finished > generation.floor else NONE_YET, planned > max(finished, generation.floor))


def _parsed(text: str) -> OffsetEntry | None:
    try:
        return parse_offset_entry(text.encode())
    except FormatError:
        return None


def _missing_files(
    ledger: Ledger,
    stream: StreamRecord,
    logs: CheckpointLogs,
    marks: Marks,
    planned: OffsetEntry | None,
    *,
    source_logs: Mapping[str, str],
) -> tuple[str, ...]:
    """Source files of the planned next batch that do not exist; other sources cannot be looked up without Spark."""
    if planned is None:
        return ()
    starts = _starts(logs, marks.planned - 1)
    missing: list[str] = []
    for offset in planned.offsets:
        start = starts.get(offset.source)
        kind = kind_of(offset.text, {})
        first, last = kind.cut_entry(start), kind.cut_entry(offset.text)
        if last is None:
            continue
        log = source_logs.get(offset.source, offset.source)
        lines = ledger.lines(stream.full_name, SOURCES + log, (-1 if first is None else first) + 1, last)
        span = SourceRange(offset.source, start, offset.text, lines)
        try:
            missing += kind.unavailable(span, StoreAvailability())
        except FormatError as error:
            missing.append(f"source {offset.source}, whose recorded entries cannot be parsed ({error.message})")
    return tuple(missing)


def _starts(logs: CheckpointLogs, batch: int) -> dict[str, str | None]:
    if batch < 0:
        return {}
    try:
        return {offset.source: offset.text for offset in logs.offset(batch).offsets}
    except (FormatError, OSError):
        return {}


def stream_id(home: Home, stream: StreamRecord) -> str | None:
    """The id that the home knows the stream by, or the ledger if ``stream.json`` is lost."""
    known = read_stream_file(home, stream.pipeline, stream.name)
    return known.id if known is not None else stream.id
