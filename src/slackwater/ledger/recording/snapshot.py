"""Makes a stream's snapshot in a read-only pass over ledger, checkpoint and output."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from slackwater.checkpoint.damage import FoundDamage, find_damage
from slackwater.checkpoint.logs import NO_DATA_BATCHES, CheckpointLogs, marks_of_inventory, no_data_entry
from slackwater.checkpoint.opened import OpenedCheckpoint, open_checkpoint
from slackwater.core.checkpoint import NONE_YET, Damage, Depth, Marks, OffsetEntry, SinkFile, written_by_all
from slackwater.core.errors import FormatError, SinkUnchecked, SinkUnreadable
from slackwater.core.program import QueryProfile
from slackwater.core.records import GenerationRecord, RunRecord, StreamRecord
from slackwater.core.snapshot import OutputSeen, Recorded, Snapshot, Unmarked
from slackwater.formats.text_log import parse_offset_entry
from slackwater.ledger.home import Home, Place, place_of, read_stream_file
from slackwater.ledger.lease import view_of
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.lineage import INPUT_WATERMARKS, SINK, SOURCES
from slackwater.ledger.recording.source_availability import StoreAvailability
from slackwater.sinks.common.contract import Output, of_query
from slackwater.sinks.common.registry import member_identities, open_each, open_output
from slackwater.sources import kind_of
from slackwater.sources.common.contract import SourceRange
from slackwater.storage.open import open_read_store


def look_at_output(
    sink: Mapping[str, str],
    stream_id: str | None,
    expected: tuple[int, bool],
    depth: Depth,
    *,
    recorded: Mapping[int, str] | None = None,
    query_id: str | None = None,
) -> tuple[int | None, OutputSeen]:
    """The stream's ``written`` mark, and the state of its outputs.

    ``expected``: a batch (-1: none) that the outputs should show, if not a later batch; and whether a later batch was
    planned and may be written. With ``query_id`` an output shows the rows of Spark's own writer. The depth ``all``
    compares with ``recorded`` log entries.
    """
    each, identities = open_each(sink), member_identities(sink)
    # A single output is opened once: reading its log a second time takes as long as the first time.
    output = each[0] if identities == (sink,) else open_output(sink)
    unreadable: SinkUnreadable | None = None
    unchecked = ""
    marks: list[int | None] = []
    try:
        marks = [one.last_written() if query_id is None else one.written_by(query_id) for one in each]
    except SinkUnchecked as error:
        marks = [None] * len(each)
        unchecked = f"{error.message}: {error.found} at {error.where}"
    except SinkUnreadable as error:
        unreadable = error
    owner, name = None, None
    unmarked: Unmarked | None = None
    try:
        owner, name = _owner(each, stream_id)
        unmarked = _unmarked(each, marks, expected)
    except SinkUnreadable as error:
        unreadable = unreadable or error
    written = written_by_all(marks)
    orphans = output.orphans() if depth == "all" else ()
    unlisted = _unlisted(output, orphans, recorded or {}, written)
    return written, OutputSeen(
        location=output.location,
        owner=owner,
        owner_name=name,
        batches_skipped=output.traits.skips_known_batches,
        skipped_are_read=output.traits.reads_known_batches,
        can_cut=of_query(output, query_id).traits.cuts,
        delivery=output.traits.delivery,
        unreadable=unreadable,
        damage=() if unreadable else (*output.damage(depth), *unlisted.values()),
        orphans=tuple(name for name in orphans if name not in unlisted),
        members=tuple(
            OutputSeen(
                kind=identity.get("kind", "unknown"),
                location=one.location,
                written=mark,
                batches_skipped=one.traits.skips_known_batches,
                can_cut=one.traits.cuts,
                delivery=one.traits.delivery,
            )
            for identity, one, mark in (zip(identities, each, marks, strict=True) if len(each) > 1 and marks else ())
        ),
        unmarked=unmarked,
        unchecked=unchecked,
    )


def _unmarked(each: tuple[Output, ...], marks: Sequence[int | None], expected: tuple[int, bool]) -> Unmarked | None:
    finished, unsure = expected
    for one, mark in zip(each, marks, strict=False):
        if mark is None or not (mark < finished or (unsure and one.owner() is None)):
            continue
        if (lost := one.lost_marker(mark)) is not None:
            # A swap claims the output. Undone, it must be seen again that the marker is not that of the rows.
            replaceable = len(each) == 1 and one.without_marker() is not None and mark < finished
            return Unmarked(one.location, mark, finished, lost.emptied, lost.shows_rows, replaceable)
    return None


def _unlisted(
    output: Output, orphans: Sequence[str], recorded: Mapping[int, str], written: int | None
) -> Mapping[str, Damage]:
    """Existing files of a recorded batch that the output no longer lists."""
    log = output.log()
    if not orphans or log is None or written is None:
        return {}
    names = set(orphans)
    found: dict[str, Damage] = {}
    for batch, text in recorded.items():
        files: object = ()
        with suppress(FormatError):
            files = log.parse(text.encode("utf-8", "surrogateescape")) if batch <= written else ()
        for file in files if isinstance(files, tuple) else ():
            name = output.relative_path(file.path) if isinstance(file, SinkFile) else None
            if name in names:
                expected = f"an entry of batch {batch} that lists it, as the ledger recorded"
                found[str(name)] = Damage(str(name), "unlisted", expected, "no entry with it")
    return found


def _owner(each: tuple[Output, ...], stream_id: str | None) -> tuple[str | None, str | None]:
    """Id and name of the owner of the outputs; a different owner of any output wins."""
    owners = [(owner, one) for one in each if (owner := one.owner()) is not None]
    others = [pair for pair in owners if pair[0].stream_id != stream_id]
    for owner, one in (*others, *owners):
        name = f"{owner.stream} of the home {owner.home}"
        return owner.stream_id, f"{name} ({one.location})" if len(each) > 1 else name
    return None, None


def look_at_stream(
    ledger: Ledger,
    home: Home,
    stream: StreamRecord,
    depth: Depth = "quick",
    *,
    own_lease: bool = False,
    place: Callable[[], Place] | None = None,
) -> tuple[Snapshot, OpenedCheckpoint]:
    """The snapshot and the checkpoint that it was made of. ``own_lease``: the caller holds the lease."""
    name = stream.full_name
    # The lease first: a run that ends meanwhile is then seen with its end, and never as killed.
    lease = view_of(ledger, name)
    holder = lease.record.purpose if lease.state == "held" and lease.record and not own_lease else None
    run = ledger.last_run(name)
    generation = ledger.generation(name, stream.current_generation)
    profile = profile_of(generation)
    source_logs = profile.logs_of_sources if profile is not None else {}
    opened = open_checkpoint(open_read_store(generation.location))
    identifier = stream_id(home, stream)
    logs = opened.logs
    marks = marks_of_inventory(logs, opened.inventory)
    recorded = _recorded(ledger, stream, marks)
    expected = _expected(marks, recorded, generation)
    written, output = look_at_output(
        stream.sink,
        identifier,
        expected,
        depth,
        recorded=ledger.lines(name, SINK) if depth == "all" else {},
        query_id=generation.query_id or logs.query_id,
    )
    marks = replace(marks, written=written, pending_no_data=_no_data_batch(logs, marks, stream, profile, run))
    planned = logs.newest_offset if marks.next_is_planned and marks.next_batch == marks.planned else None
    seen_at = place_of(home) if place is None else place()
    # A checkpoint without a batch is lost or new.
    found = find_damage(opened, depth, source_logs=source_logs) if marks.planned >= 0 else FoundDamage()
    snapshot = Snapshot(
        stream=stream._replace(id=identifier),
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
        home=seen_at[0],
        home_was=seen_at[1],
        code_file=stream.pipeline_file or _code_of_operations(ledger, name),
        inputs_recorded=frozenset(ledger.entries(name, INPUT_WATERMARKS)),
    )
    return snapshot, opened


def _code_of_operations(ledger: Ledger, stream: str) -> str:
    """The pipeline file of a watched query's newest plan with such a file."""
    for operation in reversed(ledger.operations(stream)):
        files = ledger.operation_files(operation.id)
        try:
            found = json.loads(files.plan)["pipeline_file"] if files is not None else ""
        except (ValueError, LookupError, TypeError):
            continue
        if isinstance(found, str) and found:
            return found
    return ""


def profile_of(generation: GenerationRecord) -> QueryProfile | None:
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


def _recorded(ledger: Ledger, stream: StreamRecord, marks: Marks) -> Recorded:
    name, following = stream.full_name, marks.next_batch
    entry = None
    with suppress(FormatError, KeyError):
        entry = parse_offset_entry(ledger.lines(name, "offsets", following, following)[following].encode())
    mark = ledger.last_sink_mark(name)
    return Recorded(
        planned=ledger.newest_entry(name, "offsets"),
        committed=ledger.newest_entry(name, "commits"),
        # An output without a log of files is recorded by its marks only.
        shown=max(ledger.newest_entry(name, SINK), mark.written if mark is not None else NONE_YET),
        next_entry=entry,
    )


def _expected(marks: Marks, recorded: Recorded, generation: GenerationRecord) -> tuple[int, bool]:
    """The expected state; ignores batches before a reset or backfill."""
    if marks.planned < 0:
        finished, planned = recorded.committed, recorded.planned
    else:
        finished, planned = marks.next_batch - 1, marks.planned
    return finished if finished > generation.floor else NONE_YET, planned > max(finished, generation.floor)


def _missing_files(
    ledger: Ledger,
    stream: StreamRecord,
    logs: CheckpointLogs,
    marks: Marks,
    planned: OffsetEntry | None,
    *,
    source_logs: Mapping[str, str],
) -> tuple[str, ...]:
    """Missing source files of the planned batch; other sources need Spark."""
    if planned is None:
        return ()
    starts: dict[str, str | None] = {}
    if marks.planned > 0:
        with suppress(FormatError, OSError):
            starts = {offset.source: offset.text for offset in logs.offset(marks.planned - 1).offsets}
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


def stream_id(home: Home, stream: StreamRecord) -> str | None:
    known = read_stream_file(home, stream.pipeline, stream.name)
    return known.id if known is not None else stream.id
