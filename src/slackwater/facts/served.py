"""Compares the next batch's position with the sources' data; asks without a JVM."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TypeAlias, TypeVar

from slackwater.checkpoint.logs import CheckpointLogs
from slackwater.checkpoint.opened import OpenedCheckpoint
from slackwater.core.checkpoint import OffsetEntry
from slackwater.core.commands import mention
from slackwater.core.errors import FormatError
from slackwater.core.facts import ChangedFile, Fact, SourceFacts, Unknown, Unserved
from slackwater.core.program import SourceShape, parsed_program
from slackwater.core.records import GenerationRecord, LogLine
from slackwater.core.snapshot import Snapshot
from slackwater.facts.attempt import tried, tried_in_time
from slackwater.facts.source_files import changed_files, newest_files, recorded_sizes
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.lineage import SOURCE_IDS
from slackwater.ledger.tables import unreadable
from slackwater.sources import kind_of, kinds_of_format
from slackwater.sources.common.contract import Asked, SparkSource

_T = TypeVar("_T")
Ids: TypeAlias = Mapping[str, Mapping[str, str]]
"""``LiveSource.ids`` by the source's number in the query."""


def shapes_of(snapshot: Snapshot) -> Sequence[SourceShape]:
    """The sources in the recorded program of the query that made the newest batch."""
    recorded = parsed_program(snapshot.generation.programs, max(snapshot.marks.committed, 0))
    return recorded.sources if recorded is not None else ()


def at_place(values: Sequence[_T], place: int | None) -> _T | None:
    return values[place] if place is not None and place < len(values) else None


def offset_before(opened: OpenedCheckpoint) -> OffsetEntry | None:
    """The entry before the newest in ``offsets/``; ``None`` if it is damaged, too."""
    known = opened.logs.offset_ids
    with suppress(FormatError, OSError):
        return opened.logs.offset(known[-2]) if len(known) > 1 else None
    return None


def asked_sources(
    ledger: Ledger, snapshot: Snapshot, opened: OpenedCheckpoint, query: Sequence[SparkSource] = ()
) -> tuple[SourceFacts, ...]:
    """The sources that can be asked before a start; for files, only files in the newest entries of a log.

    ``query`` are the sources of the query that is about to start, by their places in it.
    """
    newest = opened.logs.newest_offset
    if newest is None:
        return ()
    before = offset_before(opened) if snapshot.marks.next_is_planned else None
    marks, shapes = snapshot.marks, shapes_of(snapshot)
    ids = recorded_ids(ledger, snapshot.generation, marks.planned)
    starts = {offset.source: offset.text for offset in before.offsets} if before is not None else {}
    made_ms = planned_ms(snapshot, newest, before)
    found = []
    for index, offset in enumerate(newest.offsets):
        shape, kind = at_place(shapes, index), kind_of(offset.text, {})
        if (last := kind.cut_entry(offset.text)) is not None:
            changed = _changed(ledger, snapshot, offset.source, last)
            found.append(SourceFacts(offset.source, kind.kind, None, offset.text, changed_files=changed, shape=shape))
        if shape is None or not kind.shows_what_is_served:
            continue
        start = starts.get(offset.source) if marks.next_is_planned else offset.text
        asked = Asked(start, offset.text if marks.next_is_planned else None, made_ms, ids.get(str(index), {}))
        lacking = unserved(offset.source, shape, asked, at_place(query, index))
        found.append(SourceFacts(offset.source, kind.kind, start, offset.text, unserved=lacking, shape=shape))
    return tuple(found)


def _changed(ledger: Ledger, snapshot: Snapshot, source: str, last: int) -> Fact[tuple[ChangedFile, ...]]:
    stream, log = snapshot.stream.full_name, snapshot.source_logs.get(source, source)
    files = newest_files(ledger, stream, log, last)
    sizes = recorded_sizes(ledger, stream, log, files)
    return tried_in_time(lambda: changed_files(files, sizes), f"the files of source {source} cannot be looked up")


def not_compared(sources: Iterable[SourceFacts]) -> tuple[str, ...]:
    """The sources that did not answer, with reasons, for people."""
    facts = (fact for source in sources for fact in (source.unserved, source.changed_files))
    return tuple(f"not compared: {fact.reason}" for fact in facts if isinstance(fact, Unknown))


def unserved(
    source: str, shape: SourceShape | None, asked: Asked, now: SparkSource | None = None
) -> Fact[tuple[Unserved, ...]]:
    kind = kind_of(asked.start if asked.end is None else asked.end, {})
    if not kind.shows_what_is_served:
        return ()
    if shape is None:
        return Unknown(
            f"what source {source} reads is recorded by a run only",
            f"start its program by `{mention('run')}`, or have it recorded by slackwater.watch",
        )
    return tried_in_time(
        lambda: tuple(kind.live().unserved(shape, asked, now)), f"source {source} cannot be asked for its positions"
    )


def planned_ms(snapshot: Snapshot, newest: OffsetEntry | None, before: OffsetEntry | None) -> int | None:
    """The time at which Spark planned the batch before the next; ``None`` if a Slackwater plan made or inherited it."""
    marks, generation = snapshot.marks, snapshot.generation
    entry = before if marks.next_is_planned else newest
    inherited = -1 if generation.based_at is None else generation.based_at
    if entry is None or entry.metadata is None or marks.next_batch - 1 <= max(inherited, generation.floor):
        return None
    return entry.metadata.batch_timestamp_ms or None


def recorded_ids(ledger: Ledger, generation: GenerationRecord, planned: int) -> Ids:
    """The sources' ids when the run that planned batch ``planned`` started; empty: not recorded.

    Only of this generation: after a reset, earlier positions may be of other topics.
    """
    name, number = generation.stream, generation.number
    runs = [one for one in ledger.recorded_entries(name, number, SOURCE_IDS) if one <= planned]
    text = ledger.own_lines(name, number, SOURCE_IDS, [max(runs)])[max(runs)] if runs else "{}"
    try:
        return {place: dict(ids) for place, ids in json.loads(text).items()}
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise unreadable("ids of sources as JSON", text) from error


def record_ids(
    ledger: Ledger,
    generation: GenerationRecord,
    shapes: Sequence[SourceShape],
    logs: CheckpointLogs,
    query: Sequence[SparkSource],
) -> None:
    """Record the source ids at the start of a run. A source that does not answer keeps its earlier ids."""
    offsets = [one.text for one in logs.newest_offset.offsets] if logs.newest_offset is not None else []
    found: dict[str, Mapping[str, str]] = {}
    for index, shape in enumerate(shapes):
        ids = _present_ids(shape, at_place(offsets, index), at_place(query, index))
        if isinstance(ids, Unknown):
            return
        if ids:
            found[str(index)] = ids
    following = logs.planned + 1
    if found != recorded_ids(ledger, generation, following):
        text = json.dumps(found, sort_keys=True, separators=(",", ":"))
        ledger.record_lines([LogLine(generation.stream, generation.number, SOURCE_IDS, following, text)])


def _present_ids(shape: SourceShape, offset: str | None, now: SparkSource | None) -> Fact[Mapping[str, str]]:
    kind = next((one for one in kinds_of_format(shape.kind) if one.shows_what_is_served), None)
    return {} if kind is None else tried(lambda: kind.live().ids(shape, offset, now), "a source does not answer")
