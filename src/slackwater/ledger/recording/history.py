"""A stream's recorded past, and the batches read since its output was last emptied or replaced."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from slackwater.core.commands import command
from slackwater.core.errors import FormatError, Refused
from slackwater.core.records import BatchRecord, History, RunRecord, StreamRecord
from slackwater.core.sink import Cut
from slackwater.formats.compactible import parse_file_source_log
from slackwater.formats.text_log import parse_offset_entry
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.lineage import INPUT_WATERMARKS, METADATA, SINK, SIZES, SOURCES, Contribution, contributions
from slackwater.ledger.recording.batch_history import offsets_by_source
from slackwater.ledger.recording.snapshot import profile_of
from slackwater.sinks.common.contract import Output, of_query
from slackwater.sinks.common.registry import open_each, open_output
from slackwater.sources.common.contract import SourceRange

TRIGGER = "triggerExecution"
"""Spark's name for a batch's total time in its progress event."""


def settings_of_state(ledger: Ledger, stream: str) -> Mapping[str, str] | None:
    batch = ledger.batch(stream, ledger.newest_entry(stream, "commits"))
    run = ledger.run(batch.run) if batch is not None and batch.run is not None else ledger.last_run(stream)
    return None if run is None else run.settings


def history_of(ledger: Ledger, stream: StreamRecord) -> History:
    """Everything recorded; ``reconcile`` has copied the checkpoint's logs first."""
    name = stream.full_name
    batches = ledger.batch_summaries(name)
    skipped = _skipped(ledger, stream, batches)
    recorded_logs = ledger.logs(name)
    sources = [log for log in recorded_logs if log.startswith(SOURCES)]

    generation = ledger.generation(name, stream.current_generation)
    begins, profile = generation.floor + 1, profile_of(generation)
    recorded = {log.removeprefix(SOURCES): ledger.lines(name, log) for log in sources}
    logs = profile.logs_of_sources if profile is not None else {}
    # The entry before the first batch has the positions at which that batch starts.
    offsets = {batch: text for batch, text in ledger.lines(name, "offsets").items() if batch >= begins - 1}
    sizes_of = (
        json.loads(line) for log in recorded_logs if log.startswith(SIZES) for line in ledger.lines(name, log).values()
    )
    return History(
        metadata=ledger.lines(name, METADATA).get(0),
        offsets=offsets,
        commits={batch: text for batch, text in ledger.lines(name, "commits").items() if batch >= begins - 1},
        written=ledger.lines(name, SINK),
        sources=recorded | {source: recorded[log] for source, log in logs.items() if log in recorded},
        source_logs=logs,
        event_time_max_ms={b.batch_id: b.event_time_max_ms for b in batches if b.event_time_max_ms is not None},
        event_time_min_ms={b.batch_id: b.event_time_min_ms for b in batches if b.event_time_min_ms is not None},
        input_rows={batch.batch_id: batch.input_rows for batch in batches if batch.batch_id not in skipped},
        skipped=skipped,
        runs=_runs(ledger.runs(name), batches, offsets),
        begins=begins,
        newest_of_inputs_ms=_newest_of_inputs(ledger, name),
        sizes={path: size for sizes in sizes_of for path, size in sizes.items()},
        durations_ms={
            batch.batch_id: took_ms
            for batch in batches
            if isinstance(took_ms := batch.durations_ms.get(TRIGGER), int) and batch.batch_id not in skipped
        },
    )


def _newest_of_inputs(ledger: Ledger, name: str) -> dict[int, int]:
    found: dict[int, int] = {}
    for batch, line in ledger.lines(name, INPUT_WATERMARKS).items():
        recorded = json.loads(line)
        watermarks_ms = [one for one in recorded["inputs_ms"] if one is not None]
        if watermarks_ms:
            # The longest delay, whichever input has it: a time that is too new makes a rebuild read more, never less.
            found[batch] = max(watermarks_ms) + max(recorded["delays_ms"])
    return found


def readers_of(ledger: Ledger, stream: StreamRecord, cut: Cut) -> list[str]:
    others = [other.full_name for other in ledger.streams() if other.full_name != stream.full_name]
    return [other for other in others if read_of(ledger, stream, cut, other) is not None]


def output_of(ledger: Ledger, stream: StreamRecord) -> Output:
    return of_query(open_output(stream.sink), ledger.generation(stream.full_name, stream.current_generation).query_id)


def read_of(ledger: Ledger, stream: StreamRecord, cut: Cut, other: str) -> Mapping[str, int] | None:
    if not cut.batches:
        return None
    each = open_each(stream.sink) if cut.members else (output_of(ledger, stream),)
    parts = zip(each, cut.members or (cut,), strict=True)
    found = [_read_of(ledger, output, part, other) for output, part in parts if part.files]
    known = [one for one in found if one is not None]
    if not known:
        return None
    entries: dict[str, int] = {}
    for source, entry in (item for one in known for item in one.items()):
        entries[source] = min(entry, entries.get(source, entry))
    return entries if all(known) else {}


def _read_of(ledger: Ledger, output: Output, cut: Cut, other: str) -> Mapping[str, int] | None:
    was_read = output.was_read(_offsets(ledger, other), cut)
    if was_read is not None:
        return {} if was_read else None
    wanted, entries = set(cut.files), {}
    for log in (log for log in ledger.logs(other) if log.startswith(SOURCES)):
        texts = [text for text in ledger.lines(other, log).values() if '"path"' in text]
        files = [file for text in texts for file in parse_file_source_log(text.encode())]
        named = [file.log_offset for file in files if output.relative_path(file.path) in wanted]
        if named:
            entries[log.removeprefix(SOURCES)] = min(named)
    return entries or None


def _offsets(ledger: Ledger, stream: str) -> Iterator[str]:
    for text in ledger.lines(stream, "offsets").values():
        with suppress(FormatError):
            yield from (offset.text for offset in parse_offset_entry(text.encode()).offsets if offset.text)


def _skipped(ledger: Ledger, stream: StreamRecord, batches: Sequence[BatchRecord]) -> frozenset[int]:
    """Batches possibly rerun when the sink already held them.

    The file sink skips such a batch without reading rows: the rerun reports no rows or event times. A run's start reads
    both marks; a watched batch only shows an empty rerun.
    """
    held = {batch.batch_id for batch in batches if batch.run is None}
    ahead = [
        (mark.committed, mark.written)
        for mark in ledger.sink_marks(stream.full_name)
        if mark.committed is not None and mark.committed < mark.written
    ]
    if ahead:
        # Only ids that are recorded: a damaged sink can show any number as its newest batch.
        recorded = {batch.batch_id for batch in batches} | ledger.entries(stream.full_name, "offsets")
        for committed, written in ahead:
            held |= {committed + 1} | {one for one in recorded if committed < one <= written}
    # Spark has reported rows of these, so that they were not skipped.
    held -= {batch.batch_id for batch in batches if batch.input_rows}
    reported = held & {batch.batch_id for batch in batches}
    found = ledger.batches(stream.full_name, min(reported), max(reported)) if reported else ()
    return frozenset(held - {one.batch_id for one in found if all(part.start == part.end for part in one.sources)})


def _runs(
    runs: Sequence[RunRecord], batches: Sequence[BatchRecord], offsets: Mapping[int, str]
) -> dict[int, RunRecord]:
    """The run of each batch: from its progress, otherwise the newest run started before it was planned."""
    by_id = {run.id: run for run in runs}
    found = {batch.batch_id: by_id[batch.run] for batch in batches if batch.run in by_id}
    for batch in offsets.keys() - found.keys():
        planned_ms = 0
        with suppress(FormatError):
            metadata = parse_offset_entry(offsets[batch].encode()).metadata
            planned_ms = metadata.batch_timestamp_ms if metadata is not None else 0
        run = next((one for one in reversed(runs) if one.started_ms <= planned_ms), None)
        if run is not None:
            found[batch] = run
    return found


def executed(ledger: Ledger, stream: StreamRecord) -> Iterator[SourceRange]:
    """A range for each source and each generation that ran batches in the output.

    An unrecorded start is ``None``: the beginning. Raises Refused (``backfill-unknown``) for an unrecorded end, and
    FormatError.
    """
    name = stream.full_name
    for share in shares(ledger, stream):
        lines = ledger.lines(name, "offsets", max(share.base, 0), share.last_batch, generation=share.generation)
        entries = {batch: text.encode("utf-8", "surrogateescape") for batch, text in lines.items()}
        newest = max((batch for batch in lines if batch > share.base), default=None)
        last = share.last_batch
        if last is not None and last > share.base and newest != last:
            raise Refused(
                "backfill-unknown",
                f"The reads of generation {share.generation} up to batch {last} are not recorded, so rows could "
                "be written twice",
                where=f"stream {name}",
                expected=f"the range of batch {last}",
                found="no range" if newest is None else f"batch {newest} as the newest",
                hint="restore the ledger from a backup; or process everything again: "
                f"{command('plan', 'reset', name, '--from', 'earliest')}",
            )
        if newest is None:
            continue
        first = entries.get(share.base)
        starts = offsets_by_source(parse_offset_entry(first)) if first is not None else {}
        profile = profile_of(ledger.generation(name, share.generation))
        logs = profile.logs_of_sources if profile is not None else {}
        for source, end in offsets_by_source(parse_offset_entry(entries[newest])).items():
            log = ledger.lines(name, SOURCES + logs.get(source, source), generation=share.generation)
            yield SourceRange(source, starts.get(source), end, log)


def shares(ledger: Ledger, stream: StreamRecord) -> tuple[Contribution, ...]:
    return contributions(ledger.generations(stream.full_name), stream.current_generation)
