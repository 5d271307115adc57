"""What the ledger remembers, as a page and as a document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from slackwater.app.ledger_view import BatchView, RunView, SourceRange, StreamView
from slackwater.cli.render_words import iso, moment, number, span
from slackwater.model.records import GenerationRecord, OperationRecord

SCHEMA = "slackwater.ledger/1"
RUNS_SHOWN = 10
OFFSET_WIDTH = 60


def ledger_page(streams: Sequence[StreamView], place: str) -> Group:
    """A block for each stream."""
    if not streams:
        return Group(Text(f"the ledger knows no stream yet: {place}"))
    parts: list[Text | Table] = []
    for view in streams:
        parts += [Text()] if parts else []
        parts += _block(view)
    return Group(*parts)


def ledger_document(streams: Sequence[StreamView], place: str) -> dict[str, Any]:
    """The document ``slackwater.ledger/1``; docs/json.md tells every field."""
    return {"schema": SCHEMA, "ledger": place, "streams": [_stream_fields(view) for view in streams]}


def _block(view: StreamView) -> list[Text | Table]:
    heading = Text(view.stream.full_name, style="bold")
    heading.append(
        f"  {view.stream.output_mode} to {view.stream.sink.get('path', view.stream.sink['kind'])}", "not bold"
    )
    parts: list[Text | Table] = [heading, Text("generations", style="dim"), _generations(view)]
    parts += [Text("runs" + _more(len(view.runs)), style="dim"), _runs(view.runs[-RUNS_SHOWN:])]
    if view.operations:
        parts += [Text("operations", style="dim"), _operations(view.operations)]
    if view.batches is None:
        return [*parts, Text(f"{number(view.batches_recorded)} batches are recorded", style="dim")]
    of_all = f"batches, {len(view.batches)} of {number(view.batches_recorded)} recorded"
    return [*parts, Text(of_all, style="dim"), _batches(view.batches)]


def _more(count: int) -> str:
    return f", the newest {RUNS_SHOWN} of {count}" if count > RUNS_SHOWN else ""


def _generations(view: StreamView) -> Table:
    table = _table("number", "in use", "built from", "query id", "checkpoint")
    for generation in view.generations:
        table.add_row(
            f"  {generation.number}",
            "yes" if generation.number == view.stream.current_generation else "",
            "" if generation.based_at is None else f"{_parent(generation)} at batch {generation.based_at}",
            generation.query_id or "-",
            generation.location,
        )
    return table


def _parent(generation: GenerationRecord) -> int:
    return generation.number - 1 if generation.parent is None else generation.parent


def _runs(runs: Sequence[RunView]) -> Table:
    table = _table("run", "generation", "begun", "ended", "how", "Spark", "reason")
    for run in runs:
        record = run.record
        table.add_row(
            f"  {record.id}",
            str(record.generation),
            moment(record.started_ms),
            moment(record.ended_ms),
            run.end,
            record.spark_version,
            record.reason or "",
        )
    return table


def _operations(operations: Sequence[OperationRecord]) -> Table:
    table = _table("operation", "goal", "status", "begun", "ended", "what")
    for record in operations:
        table.add_row(
            f"  {record.id}",
            record.goal,
            record.status,
            moment(record.started_ms),
            moment(record.ended_ms),
            record.summary,
        )
    return table


def _batches(batches: Sequence[BatchView]) -> Table:
    table = _table(
        "batch", "gen", "rows", "event time from", "to", "watermark", "late", "state", "took", "source from", "to"
    )
    for batch in batches:
        told = batch.progress
        table.add_row(
            f"  {batch.batch_id}",
            str(told.generation) if told else "-",
            number(told.input_rows if told else None),
            moment(told.event_time_min_ms if told else None),
            moment(told.event_time_max_ms if told else None),
            moment(batch.watermark_ms),
            number(told.late_rows if told else None),
            number(told.state_rows if told else None),
            span(took) if told and (took := told.durations_ms.get("triggerExecution")) is not None else "-",
            "\n".join(_short(source.start) for source in batch.sources),
            "\n".join(_short(source.end) for source in batch.sources),
        )
    return table


def _short(offset: str | None) -> str:
    if offset is None:
        return "-"
    return offset if len(offset) <= OFFSET_WIDTH else offset[: OFFSET_WIDTH - 3] + "..."


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for index, column in enumerate(columns):
        table.add_column(f"  {column}" if index == 0 else column)
    return table


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
        "operations": [_operation_fields(record) for record in view.operations],
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
        "parent": None if generation.based_at is None else _parent(generation),
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
    }


def _operation_fields(record: OperationRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "goal": record.goal,
        "status": record.status,
        "started": iso(record.started_ms),
        "ended": iso(record.ended_ms),
        "summary": record.summary,
    }


def _batch_fields(batch: BatchView) -> dict[str, Any]:
    told = batch.progress
    fields: dict[str, Any] = {
        "batch": batch.batch_id,
        "watermark": iso(batch.watermark_ms),
        "sources": [_source_fields(source) for source in batch.sources],
        "progress": None,
    }
    if told is not None:
        fields["progress"] = {
            "generation": told.generation,
            "timestamp": iso(told.timestamp_ms),
            "input_rows": told.input_rows,
            "event_time_min": iso(told.event_time_min_ms),
            "event_time_max": iso(told.event_time_max_ms),
            "late_rows": told.late_rows,
            "state_rows": told.state_rows,
            "output_rows": told.output_rows,
            "durations_ms": dict(told.durations_ms),
        }
    return fields


def _source_fields(source: SourceRange) -> dict[str, Any]:
    return {"source": source.source, "start": source.start, "end": source.end}
