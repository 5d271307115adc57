"""The document ``slackwater.ledger/1``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slackwater.app.documents.values import iso
from slackwater.app.ledger_view import BatchView, RunView, SourceRange, StreamView, parent_of
from slackwater.model.records import GenerationRecord, OperationRecord

SCHEMA = "slackwater.ledger/1"


def ledger_document(streams: Sequence[StreamView], place: str) -> dict[str, Any]:
    """The streams of the ledger at ``place``."""
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
    }


def operation_fields(record: OperationRecord) -> dict[str, Any]:
    """An operation as it is recorded."""
    return {
        "id": record.id,
        "goal": record.goal,
        "status": record.status,
        "started": iso(record.started_ms),
        "ended": iso(record.ended_ms),
        "summary": record.summary,
    }


def _batch_fields(batch: BatchView) -> dict[str, Any]:
    progress = batch.progress
    fields: dict[str, Any] = {
        "batch": batch.batch_id,
        "watermark": iso(batch.watermark_ms),
        "sources": [_source_fields(source) for source in batch.sources],
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


def _source_fields(source: SourceRange) -> dict[str, Any]:
    return {"source": source.source, "start": source.start, "end": source.end}
