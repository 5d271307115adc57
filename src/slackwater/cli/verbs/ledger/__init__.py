"""``slackwater ledger``: the records of streams, generations, runs, operations and batches. Reads only."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from slackwater.cli.common.arguments import Format
from slackwater.cli.common.console import iso, number, out, prepare, print_json, span, timestamp
from slackwater.core.checkpoint import OffsetEntry
from slackwater.core.commands import command
from slackwater.core.errors import FormatError, UsageError
from slackwater.core.masking import brief
from slackwater.core.records import BatchRecord, GenerationRecord, OperationRecord, RunRecord, StreamRecord
from slackwater.core.sink import newest_batch
from slackwater.formats.text_log import parse_offset_entry
from slackwater.ledger.lease import end_of, view_of
from slackwater.ledger.recording.history import shares
from slackwater.ledger.workspace import Workspace, find_stream, open_workspace
from slackwater.sinks.common.registry import open_output

NEWEST_BATCHES = 20
NEWEST_POSSIBLE = 2**63 - 1
_Ends = tuple[OffsetEntry | None, OffsetEntry | None]
_RANGE = re.compile(r"(?P<first>\d*)(?P<dots>\.\.)?(?P<last>\d*)")


SCHEMA = "slackwater.ledger/1"
WIDE = 1000
"""Tables in files and pipes are as wide as their longest line."""
RUNS_SHOWN = 10
OFFSET_WIDTH = 60


@dataclass(frozen=True, slots=True)
class RunView:
    record: RunRecord
    end: str


@dataclass(frozen=True, slots=True)
class SourceView:
    source: str
    start: str | None
    end: str | None


@dataclass(frozen=True, slots=True)
class BatchView:
    """A batch with a recorded range. ``progress`` is ``None`` without a progress event."""

    batch_id: int
    progress: BatchRecord | None
    watermark_ms: int
    sources: tuple[SourceView, ...]


@dataclass(frozen=True, slots=True)
class StreamView:
    """``output`` is its location, else the kind of its sink. ``batches_recorded`` counts all batches, also
    unrequested.
    """

    stream: StreamRecord
    output: str
    generations: tuple[GenerationRecord, ...]
    runs: tuple[RunView, ...]
    operations: tuple[OperationRecord, ...]
    batches_recorded: int
    batches: tuple[BatchView, ...] | None = None


def parent_of(generation: GenerationRecord) -> int:
    return generation.number - 1 if generation.parent is None else generation.parent


@dataclass(frozen=True, slots=True)
class BatchRange:
    """A range with both ends included; ``None`` is open."""

    first: int | None = None
    last: int | None = None


def parse_range(text: str) -> BatchRange:
    """``3..7``, ``3..``, ``..7``, ``..`` or ``5``. Raises UsageError."""
    match = _RANGE.fullmatch(text.strip())
    if match is None or not text.strip().isascii() or not text.strip():
        raise _no_range(text)
    first, last = _batch_id(match["first"], text), _batch_id(match["last"], text)
    if not match["dots"]:
        last = first
    if first is not None and last is not None and first > last:
        raise UsageError(
            "batch-range",
            "A range of batches starts with the older one",
            found=repr(text),
            hint=f"the older one first: {last}..{first}",
        )
    return BatchRange(first, last)


def _batch_id(digits: str, text: str) -> int | None:
    if not digits:
        return None
    number = int(digits) if len(digits) <= len(str(NEWEST_POSSIBLE)) else NEWEST_POSSIBLE + 1
    if number > NEWEST_POSSIBLE:
        raise _no_range(text)
    return number


def _no_range(text: str) -> UsageError:
    return UsageError(
        "batch-range",
        "A range of batches cannot be parsed",
        expected="such as 3..7, 3.., ..7 or 5",
        found=brief(repr(text)),
        hint=command("ledger", "STREAM", "--batches", "3..7"),
    )


def ledger_view(
    workspace: Workspace, name: str | None = None, wanted: BatchRange | None = None
) -> tuple[StreamView, ...]:
    """All streams without batches, or a stream with the batches in ``wanted`` (``None``: the newest few)."""
    if name is None:
        return tuple(_stream(workspace, stream) for stream in workspace.ledger.streams())
    stream = find_stream(workspace.ledger, name)
    return (replace(_stream(workspace, stream), batches=_batches(workspace, stream, wanted)),)


def _stream(workspace: Workspace, stream: StreamRecord) -> StreamView:
    ledger, name = workspace.ledger, stream.full_name
    lease = view_of(ledger.lease(name), ledger.now_ms())
    return StreamView(
        stream=stream,
        output=open_output(stream.sink).location or stream.sink.get("kind", ""),
        generations=tuple(ledger.generations(name)),
        runs=tuple(RunView(run, end_of(run, lease)) for run in ledger.runs(name)),
        operations=tuple(ledger.operations(name)),
        batches_recorded=len(ledger.entries(name, "offsets")),
    )


def _batches(workspace: Workspace, stream: StreamRecord, wanted: BatchRange | None) -> tuple[BatchView, ...]:
    ledger, name = workspace.ledger, stream.full_name
    known = sorted(ledger.entries(name, "offsets"))
    if wanted is None:
        newest = known[-NEWEST_BATCHES:]
        wanted = BatchRange(newest[0] if newest else None)
    reported = {batch.batch_id: batch for batch in ledger.batches(name, wanted.first, wanted.last)}
    ranges = _ranges(workspace, stream, wanted)
    return tuple(
        _batch(batch, reported.get(batch), ranges.get(batch, (None, None))) for batch in sorted({*ranges, *reported})
    )


def _ranges(workspace: Workspace, stream: StreamRecord, wanted: BatchRange) -> dict[int, _Ends]:
    """The entry before each batch and its own, in the generation that ran it, because starts differ between
    generations.
    """
    first, found = 0 if wanted.first is None else wanted.first, dict[int, _Ends]()
    for share in shares(workspace.ledger, stream):
        base = max(share.base, first - 1)
        last = min((one for one in (share.last_batch, wanted.last) if one is not None), default=None)
        lines = workspace.ledger.lines(stream.full_name, "offsets", max(base, 0), last, generation=share.generation)
        entries = {batch: _entry(line) for batch, line in lines.items()}
        found |= {batch: (entries.get(batch - 1), entry) for batch, entry in entries.items() if batch > base}
    return found


def _entry(text: str) -> OffsetEntry | None:
    try:
        return parse_offset_entry(text.encode("utf-8", "surrogateescape"))
    except FormatError:
        # The ledger keeps lines as Spark wrote them, damaged ones too.
        return None


def _batch(batch: int, progress: BatchRecord | None, ends: _Ends) -> BatchView:
    before, entry = ends
    starts = {offset.source: offset.text for offset in before.offsets} if before else {}
    if entry is not None:
        sources = tuple(SourceView(end.source, starts.get(end.source), end.text) for end in entry.offsets)
    else:
        known = progress.sources if progress else ()
        sources = tuple(SourceView(str(index), source.start, source.end) for index, source in enumerate(known))
    watermark = entry.watermark_ms if entry else (progress.watermark_ms if progress else None)
    return BatchView(batch, progress, watermark or 0, sources)


def ledger_document(streams: Sequence[StreamView], place: str) -> dict[str, Any]:
    return {"schema": SCHEMA, "ledger": place, "streams": [_stream_fields(view) for view in streams]}


def _stream_fields(view: StreamView) -> dict[str, Any]:
    stream = view.stream
    fields: dict[str, Any] = {
        "stream": stream.full_name,
        "pipeline": stream.pipeline,
        "name": stream.name,
        "pipeline_file": stream.pipeline_file or None,
        "sink": dict(stream.sink),
        "output_mode": stream.output_mode,
        "generation": stream.current_generation,
        "generations": [_generation_fields(generation) for generation in view.generations],
        "runs": [_run_fields(run) for run in view.runs],
        "operations": [operation_fields(record) for record in view.operations],
        "batches_recorded": view.batches_recorded,
    }
    if view.batches is not None:
        fields["batches"] = [_batch_fields(batch) for batch in view.batches]
    return fields


def _generation_fields(generation: GenerationRecord) -> dict[str, Any]:
    return {
        "number": generation.number,
        "checkpoint": generation.location,
        "query_id": generation.query_id,
        "parent": None if generation.based_at is None else parent_of(generation),
        "based_at": generation.based_at,
        "layout": None if generation.layout is None else dict(generation.layout),
    }


def _run_fields(run: RunView) -> dict[str, Any]:
    record = run.record
    return {
        "id": record.id,
        "generation": record.generation,
        "spark_version": record.spark_version,
        "started": iso(record.started_ms),
        "ended": iso(record.ended_ms),
        "end": run.end,
        "reason": record.reason,
        "program": record.program,
        "accepted": None if record.accepted is None else dict(record.accepted),
    }


def _batch_fields(batch: BatchView) -> dict[str, Any]:
    progress = batch.progress
    fields: dict[str, Any] = {
        "batch": batch.batch_id,
        "watermark": iso(batch.watermark_ms),
        "sources": [{"source": source.source, "start": source.start, "end": source.end} for source in batch.sources],
        "progress": None,
    }
    if progress is not None:
        fields["progress"] = {
            "generation": progress.generation,
            "timestamp": iso(progress.timestamp_ms),
            "input_rows": progress.input_rows,
            "event_time_min": iso(progress.event_time_min_ms),
            "event_time_max": iso(progress.event_time_max_ms),
            "late_rows": progress.late_rows,
            "state_rows": progress.state_rows,
            "output_rows": progress.output_rows,
            "durations_ms": dict(progress.durations_ms),
        }
    return fields


def ledger_page(streams: Sequence[StreamView], place: str) -> Group:
    if not streams:
        return Group(Text(f"the ledger has no stream yet: {place}"))
    parts: list[Text | Table] = []
    for view in streams:
        parts += [Text()] if parts else []
        parts += _block(view)
    return Group(*parts)


def _block(view: StreamView) -> list[Text | Table]:
    heading = Text(view.stream.full_name, style="bold")
    heading.append(f"  {view.stream.output_mode} to {view.output}", "not bold")
    parts: list[Text | Table] = [heading, Text("generations", style="dim"), _generations(view)]
    parts += [Text("runs" + _more(len(view.runs)), style="dim"), _runs(view.runs[-RUNS_SHOWN:])]
    if view.operations:
        parts += [Text("operations", style="dim"), _operations(view.operations)]
    if view.batches is None:
        return [*parts, Text(f"{number(view.batches_recorded)} batches are recorded", style="dim")]
    of_all = f"batches, {len(view.batches)} of {number(view.batches_recorded)} recorded"
    return [*parts, Text(of_all, style="dim"), _batch_table(view.batches)]


def _more(count: int) -> str:
    return f", the newest {RUNS_SHOWN} of {count}" if count > RUNS_SHOWN else ""


def _generations(view: StreamView) -> Table:
    table = table_of("number", "in use", "built from", "query id", "checkpoint")
    for generation in view.generations:
        table.add_row(
            f"  {generation.number}",
            "yes" if generation.number == view.stream.current_generation else "",
            "" if generation.based_at is None else f"{parent_of(generation)} at {newest_batch(generation.based_at)}",
            generation.query_id or "-",
            generation.location,
        )
    return table


def _runs(runs: Sequence[RunView]) -> Table:
    table = table_of("run", "generation", "started", "ended", "end", "Spark", "reason")
    for run in runs:
        record = run.record
        table.add_row(
            f"  {record.id}",
            str(record.generation),
            timestamp(record.started_ms),
            timestamp(record.ended_ms),
            run.end,
            record.spark_version,
            record.reason or "",
        )
    return table


def _operations(operations: Sequence[OperationRecord]) -> Table:
    table = table_of("operation", "goal", "status", "started", "ended", "summary")
    for record in operations:
        table.add_row(
            f"  {record.id}",
            record.goal,
            record.status,
            timestamp(record.started_ms),
            timestamp(record.ended_ms),
            record.summary,
        )
    return table


def _batch_table(batches: Sequence[BatchView]) -> Table:
    table = table_of(
        "batch", "gen", "rows", "event time from", "to", "watermark", "late", "state", "took", "source from", "to"
    )
    for batch in batches:
        progress = batch.progress
        table.add_row(
            f"  {batch.batch_id}",
            str(progress.generation) if progress else "-",
            number(progress.input_rows if progress else None),
            timestamp(progress.event_time_min_ms if progress else None),
            timestamp(progress.event_time_max_ms if progress else None),
            timestamp(batch.watermark_ms),
            number(progress.late_rows if progress else None),
            number(progress.state_rows if progress else None),
            span(took) if progress and (took := progress.durations_ms.get("triggerExecution")) is not None else "-",
            "\n".join(_short(source.start) for source in batch.sources),
            "\n".join(_short(source.end) for source in batch.sources),
        )
    return table


def _short(offset: str | None) -> str:
    if offset is None:
        return "-"
    return offset if len(offset) <= OFFSET_WIDTH else offset[: OFFSET_WIDTH - 3] + "..."


def table_of(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for index, column in enumerate(columns):
        table.add_column(f"  {column}" if index == 0 else column)
    return table


def operation_fields(record: OperationRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "goal": record.goal,
        "status": record.status,
        "started": iso(record.started_ms),
        "ended": iso(record.ended_ms),
        "summary": record.summary,
    }


def ledger(*, stream: str | None, batches: str | None, operations: bool, home: str | None, shown_as: Format) -> int:
    if operations:
        from slackwater.cli.verbs.ledger.operations import show_operations  # noqa: PLC0415 - it needs all of undo

        return show_operations(stream, home, shown_as)
    settings = prepare(home, shown_as)
    if batches is not None and stream is None:
        raise UsageError(
            "batches-of-what", "--batches needs a stream", hint=command("ledger", "STREAM", "--batches", batches)
        )
    wanted = parse_range(batches) if batches is not None else None
    with open_workspace(settings) as workspace:
        views, place = ledger_view(workspace, stream, wanted), workspace.ledger.place
    if shown_as is Format.JSON:
        print_json(ledger_document(views, place))
    else:
        out(width_of_files=WIDE).print(ledger_page(views, place))
    return 0
