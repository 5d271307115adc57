"""All facts about a stream or checkpoint, from a walk of the checkpoint and a look at the output."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from slackwater.checkpoint.damage import find_damage
from slackwater.checkpoint.layout import OFFSETS
from slackwater.checkpoint.logs import marks_of_inventory
from slackwater.checkpoint.opened import OpenedCheckpoint, open_checkpoint
from slackwater.checkpoint.reader import collector_off, read_checkpoint
from slackwater.core.checkpoint import CheckpointReport, Damage, Depth, Marks, OffsetEntry
from slackwater.core.commands import mention
from slackwater.core.errors import FormatError
from slackwater.core.facts import CheckpointSeen, Fact, Facts, HistoryFacts, SinkFacts, SourceFacts, Unknown
from slackwater.core.records import NEWEST_BATCHES, GenerationRecord, StreamRecord
from slackwater.core.snapshot import Snapshot
from slackwater.facts.sources import (
    at_place,
    changed_files,
    missing_files,
    offset_before,
    planned_ms,
    read_outputs,
    recorded_ids,
    recorded_sizes,
    removed_files,
    shapes_of,
    too_old_files,
    tried,
    unserved,
)
from slackwater.formats.compactible import parse_entry_name
from slackwater.formats.text_log import parse_offset_entry
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.recording.snapshot import look_at_output, look_at_stream
from slackwater.ledger.workspace import Workspace
from slackwater.sinks.common.registry import open_each, open_output
from slackwater.sources import kind_of
from slackwater.sources.common.contract import Asked
from slackwater.sources.common.source import encoded
from slackwater.storage.protocols import ReadStore

_UNRECORDED = "unrecorded"


def facts_of_stream(workspace: Workspace, stream: StreamRecord, depth: Depth = "start") -> Facts:
    """Facts about a recorded stream. Raises OSError or SlackwaterError if the checkpoint cannot be read."""
    with collector_off():
        snapshot, opened = look_at_stream(workspace.ledger, workspace.home, stream, depth)
        checkpoint = _checkpoint(opened, snapshot.damage)
    problem = snapshot.output.unreadable
    sink: Fact[SinkFacts]
    if problem is not None:
        sink = Unknown(f"the output cannot be read: {problem.message}", problem.hint)
    else:
        seen = snapshot.output
        sink = tried(
            lambda: SinkFacts(stream.sink, seen, snapshot.marks.written, *_listed(stream.sink)),
            "the output cannot be read",
        )
    ledger = workspace.ledger
    return Facts(
        name=stream.full_name,
        checkpoint=checkpoint,
        snapshot=snapshot,
        recorded=True,
        sources=_sources(checkpoint, snapshot, ledger),
        sink=sink,
        history=tried(
            lambda: HistoryFacts(
                tuple(reversed(ledger.runs(stream.full_name))),
                tuple(ledger.batches(stream.full_name, first=max(snapshot.marks.planned - NEWEST_BATCHES, 0))),
                _recorded_offsets(ledger, snapshot.generation, checkpoint.offset_ids[-2:]),
            ),
            "the ledger cannot be read",
        ),
    )


def facts_of_start(
    ledger: Ledger, snapshot: Snapshot, opened: OpenedCheckpoint, sources: tuple[SourceFacts, ...]
) -> Facts:
    """Facts for the checks that refuse a start. Reads one file in addition to the snapshot; no report, no output.
    ``sources`` are from ``asked_sources``.
    """
    location, query_id, marks = opened.store.location, opened.logs.query_id, snapshot.marks
    report = CheckpointReport(location, query_id, None, "", None, None, marks, None, (), (), (), {}, 0, None, ())
    checkpoint = _seen(opened, report)
    recorded = _recorded_offsets(ledger, snapshot.generation, checkpoint.offset_ids[-2:])
    return Facts(
        name=snapshot.stream.full_name,
        checkpoint=checkpoint,
        snapshot=snapshot,
        recorded=True,
        sources=sources,
        sink=Unknown("the output was not asked for this"),
        history=HistoryFacts(offsets=recorded),
    )


def facts_of_location(store: ReadStore, sink: Fact[Mapping[str, str]] | None, depth: Depth = "start") -> Facts:
    """Facts about a checkpoint that is not in the ledger. ``sink`` is the identity of the output, if given;
    ``Unknown``: the output is unreachable.
    """
    identity = None if isinstance(sink, Unknown) else sink
    with collector_off():
        opened = open_checkpoint(store)
        found = find_damage(opened, depth)
        checkpoint = _checkpoint(opened, found.damage)
    logs = opened.logs
    marks = marks_of_inventory(logs, opened.inventory)
    stream = StreamRecord(_UNRECORDED, store.location, identity or {}, "", "", id=logs.query_id)
    snapshot = Snapshot(
        stream=stream,
        generation=GenerationRecord(stream.full_name, 1, store.location, logs.query_id),
        marks=marks,
        planned_entry=logs.newest_offset if marks.next_is_planned else None,
        damage=found.damage,
        unread_state=found.unread,
    )
    seen: Fact[SinkFacts] = Unknown("the output of the query is not known", "add --sink with its path or URI")
    if isinstance(sink, Unknown):
        seen = sink
    if identity is not None:
        seen = tried(lambda: _sink(identity, marks, logs.query_id, depth), "the output cannot be read")
    if isinstance(seen, SinkFacts):
        snapshot = snapshot._replace(marks=replace(marks, written=seen.written), output=seen.seen._replace(owner=None))
    return Facts(
        name=store.location,
        checkpoint=checkpoint,
        snapshot=snapshot,
        recorded=False,
        sources=_sources(checkpoint, snapshot, None),
        sink=seen,
        history=Unknown(
            "Slackwater has recorded no run of this query",
            f"start its program by `{mention('run')}`, or have it recorded by slackwater.watch",
        ),
    )


def _checkpoint(opened: OpenedCheckpoint, start_damage: tuple[Damage, ...]) -> CheckpointSeen:
    return replace(
        _seen(opened, read_checkpoint(opened, source_files=True)),
        start_damage=start_damage,
        folders={path: folder.files for path, folder in opened.listing.folders.items()},
        atomic_rename=opened.store.traits.atomic_rename,
    )


def _seen(opened: OpenedCheckpoint, report: CheckpointReport) -> CheckpointSeen:
    logs = opened.logs
    return CheckpointSeen(
        report=report,
        offset_ids=logs.offset_ids,
        commit_ids=logs.commit_ids,
        newest_offset=logs.newest_offset,
        offset_before=offset_before(opened),
        newest_commit=logs.newest_commit,
        inventory=opened.inventory,
    )


def written_by(identity: Mapping[str, str], marks: Marks, query_id: str | None) -> Fact[int]:
    """The newest batch in the output of an unrecorded checkpoint; -1 for none."""

    def look() -> Fact[int]:
        found = _sink(identity, marks, query_id, "quick")
        problem = found.seen.unreadable
        if problem is not None:
            return Unknown(problem.message, problem.hint)
        if found.written is None:
            return Unknown(found.seen.unchecked or "this kind of output does not show its batches")
        return found.written

    return tried(look, "the output cannot be read")


def _sink(identity: Mapping[str, str], marks: Marks, query_id: str | None, depth: Depth) -> SinkFacts:
    finished = marks.next_batch - 1
    written, seen = look_at_output(identity, None, (finished, marks.planned > finished), depth)
    output, listed = open_output(identity), _listed(identity)
    if seen.owner is not None:
        return SinkFacts(identity, seen, written, *listed)
    # Without an owner the output does not know the application: the sinks of Delta and Iceberg write under the id of
    # the query, and no marker of Slackwater's can have been lost.
    query_id = query_id or ""
    transactions = output.transactions(query_id)
    if transactions is None:
        return SinkFacts(identity, seen, written, *listed)
    return SinkFacts(identity, seen._replace(unmarked=None), transactions.get(query_id), *listed, transactions)


def _listed(identity: Mapping[str, str]) -> tuple[Mapping[str, int], int]:
    each = [found for one in open_each(identity) if (found := one.listed()) is not None]
    elsewhere = {folder: files for _, folders in each for folder, files in folders.items()}
    return elsewhere, sum(files for files, _ in each)


def _recorded_offsets(
    ledger: Ledger, generation: GenerationRecord, batches: Sequence[int]
) -> Mapping[int, OffsetEntry]:
    """The recorded offsets, without inherited entries: they may have other settings."""
    lines = ledger.own_lines(generation.stream, generation.number, OFFSETS, set(batches)) if batches else {}
    found = {}
    for batch, text in lines.items():
        with suppress(FormatError):
            found[batch] = parse_offset_entry(encoded(text))
    return found


def _sources(checkpoint: CheckpointSeen, snapshot: Snapshot, ledger: Ledger | None) -> tuple[SourceFacts, ...]:
    marks, logs, stream = checkpoint.marks, snapshot.source_logs, snapshot.stream.full_name
    ids = recorded_ids(ledger, snapshot.generation, marks.planned) if ledger is not None else {}
    shapes = shapes_of(snapshot)
    newest, before = checkpoint.newest_offset, checkpoint.offset_before
    made_ms = planned_ms(snapshot, newest, before)
    ends = {offset.source: offset.text for offset in newest.offsets} if newest is not None else {}
    starts = {offset.source: offset.text for offset in before.offsets} if before is not None else {}
    found = []
    named = {line.name: line for line in checkpoint.report.sources}
    # A DataFrame that is read twice has two source numbers and one log.
    owners = ((line, named.get(logs.get(name, name))) for name, line in named.items())
    for line in (line if own is None else replace(line, log=own.log) for line, own in owners):
        end = ends.get(line.name)
        # Without a planned batch the next one starts where the newest one ends.
        start = starts.get(line.name) if marks.next_is_planned else end
        log = logs.get(line.name, line.name)
        files = checkpoint.folders.get(f"sources/{log}", ())
        listed = line.log.entries if line.log is not None else ()
        sizes = recorded_sizes(ledger, stream, log, listed) if ledger is not None else {}
        parsed = [entry for file in files if (entry := parse_entry_name(file)) is not None]
        shape = at_place(shapes, line.index)
        asked = Asked(start, end if marks.next_is_planned else None, made_ms, ids.get(str(line.index), {}))
        found.append(
            SourceFacts(
                line.name,
                kind_of(end, {}).kind if end is not None else line.kind,
                start,
                end,
                line.log,
                tuple(sorted({entry for entry, _ in parsed})),
                tuple(sorted(entry for entry, compacted in parsed if compacted)),
                missing_files(line, start, end) if marks.next_is_planned else (),
                changed_files(listed, sizes),
                removed_files(line, start if marks.next_is_planned else end),
                too_old_files(line, shape),
                read_outputs(line),
                unserved(line.name, shape, asked),
                shape,
            )
        )
    return tuple(found)
