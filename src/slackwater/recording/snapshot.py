"""Makes the snapshot of a stream in one pass over ledger, checkpoint and output; nothing is written."""

from __future__ import annotations

from dataclasses import dataclass, replace

from slackwater.checkpoint.damage import cheap_damage, thorough_damage
from slackwater.checkpoint.listing import read_listing
from slackwater.checkpoint.logs import CheckpointLogs, logs_of_listing, marks_of_inventory
from slackwater.checkpoint.owed import NO_DATA_BATCHES, owed_entry
from slackwater.checkpoint.state.inventory import read_inventory
from slackwater.errors import FormatError
from slackwater.formats.offset_log import parse_offset_entry
from slackwater.home.home import Home
from slackwater.home.identity import place_of
from slackwater.home.stream_file import read_stream_file
from slackwater.lease.view import view_of
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.lineage import SINK, SOURCES
from slackwater.model.checkpoint_logs import OffsetEntry
from slackwater.model.damage import Damage
from slackwater.model.marks import NONE_YET, Marks
from slackwater.model.profile import QueryProfile
from slackwater.model.records import GenerationRecord, RunRecord, StreamRecord
from slackwater.model.snapshot import Recorded, Snapshot
from slackwater.recording.output_seen import look_at_output
from slackwater.recording.reach import StoreReach
from slackwater.sources.contract import SourceRange
from slackwater.sources.registry import kind_of
from slackwater.storage.open import open_read_store
from slackwater.storage.protocols import ReadStore


@dataclass(frozen=True, slots=True)
class SnapshotContext:
    """What a snapshot is read from. ``thorough`` reads every file of the marks; ``own_lease``: the caller holds it."""

    ledger: Ledger
    home: Home
    thorough: bool = False
    own_lease: bool = False


def read_snapshot(context: SnapshotContext, stream: StreamRecord) -> Snapshot:
    """A snapshot of a stream. Raises OSError where a store cannot be reached."""
    ledger, name = context.ledger, stream.full_name
    # The lease first: a run that ends meanwhile is then seen with its end, and never as killed.
    lease = view_of(ledger.lease(name), ledger.now_ms())
    holder = lease.record.purpose if lease.state == "held" and lease.record and not context.own_lease else None
    run = ledger.last_run(name)
    generation = ledger.generation(name, stream.current_generation)
    profile = profile_of(generation)
    store = open_read_store(generation.location)
    identifier = stream_id(context.home, stream)
    written, output = look_at_output(stream.sink, identifier, thorough=context.thorough)
    marks, logs = _marks_of(store)
    marks = replace(marks, written=written, owed=_owed(logs, marks, stream, profile, run))
    planned = _planned_entry(logs, marks)
    place = place_of(context.home)
    return Snapshot(
        stream=replace(stream, id=identifier),
        generation=generation,
        marks=marks,
        recorded=_recorded(ledger, stream, marks),
        output=output,
        profile=profile,
        planned_entry=planned,
        damage=_damage(store, marks, thorough=context.thorough),
        missing_files=_missing_files(ledger, stream, logs, marks, planned),
        operation=ledger.open_operation(name),
        holder=holder,
        last_run=run,
        home=place.place,
        home_was=place.was,
    )


def _damage(store: ReadStore, marks: Marks, *, thorough: bool) -> tuple[Damage, ...]:
    """Damage of a checkpoint that holds a batch; one that does not is lost or new, which the marks show."""
    if marks.planned < 0:
        return ()
    return thorough_damage(store) if thorough else cheap_damage(store)


def profile_of(generation: GenerationRecord) -> QueryProfile | None:
    """What the ledger recorded of the query's plan, ``None`` where no run did."""
    layout = generation.layout
    return QueryProfile.from_json(layout) if layout and "operators" in layout else None


def _marks_of(store: ReadStore) -> tuple[Marks, CheckpointLogs]:
    listing = read_listing(store)
    logs = logs_of_listing(store, listing)
    return marks_of_inventory(logs, read_inventory(listing)), logs


def _owed(
    logs: CheckpointLogs, marks: Marks, stream: StreamRecord, profile: QueryProfile | None, run: RunRecord | None
) -> int | None:
    if profile is None and marks.state is None:
        return None
    settings = (run.settings if run is not None else None) or {}
    enabled = settings.get(NO_DATA_BATCHES, "true") != "false"
    entry = owed_entry(logs, profile, stream.output_mode, enabled=enabled, now_ms=0)
    return marks.planned + 1 if entry is not None else None


def _planned_entry(logs: CheckpointLogs, marks: Marks) -> OffsetEntry | None:
    return logs.newest_offset if marks.next_is_planned and marks.next_batch == marks.planned else None


def _recorded(ledger: Ledger, stream: StreamRecord, marks: Marks) -> Recorded:
    name, following = stream.full_name, marks.next_batch
    entry = ledger.lines(name, "offsets", following, following).get(following)
    mark = ledger.last_sink_mark(name)
    return Recorded(
        planned=max(ledger.entries(name, "offsets"), default=NONE_YET),
        committed=max(ledger.entries(name, "commits"), default=NONE_YET),
        shown=max([*ledger.entries(name, SINK), mark.written if mark is not None else NONE_YET]),
        next_entry=_parsed(entry.text) if entry is not None else None,
    )


def _parsed(text: str) -> OffsetEntry | None:
    try:
        return parse_offset_entry(text.encode())
    except FormatError:
        return None


def _missing_files(
    ledger: Ledger, stream: StreamRecord, logs: CheckpointLogs, marks: Marks, planned: OffsetEntry | None
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
        lines = ledger.lines(stream.full_name, SOURCES + offset.source, (-1 if first is None else first) + 1, last)
        span = SourceRange(offset.source, start, offset.text, {entry: line.text for entry, line in lines.items()})
        try:
            missing += kind.unavailable(span, StoreReach())
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
    """The id that the home knows the stream by; the ledger of an earlier release has none."""
    known = read_stream_file(home, stream.pipeline, stream.name)
    return known.id if known is not None else stream.id
