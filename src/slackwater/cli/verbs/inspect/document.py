"""The document ``slackwater.inspect/1`` (docs/inspect.md)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from slackwater.cli.common.console import marks_document, offset_value
from slackwater.core.checkpoint import (
    BatchLine,
    CheckpointReport,
    NextBatch,
    OperatorLine,
    SourceEnd,
    SourceLine,
    StoreLine,
)

SCHEMA = "slackwater.inspect/1"


def inspect_document(report: CheckpointReport) -> dict[str, Any]:
    """The report as a document: ids are numbers, offsets are JSON if possible."""
    return {
        "schema": SCHEMA,
        "location": report.location,
        "query_id": report.query_id,
        "spark_version": report.spark_version._asdict(),
        "log_versions": {"offsets": report.offsets_version, "commits": report.commits_version},
        "marks": marks_document(report.marks),
        "next_batch": _next_batch(report.next_batch) if report.next_batch else None,
        "batches": [_batch(line) for line in report.batches],
        "sources": [_source(line) for line in report.sources],
        "operators": [_operator(line) for line in report.operators],
        "settings": dict(report.settings),
        "files": asdict(report.files),
        "leftovers": list(report.leftovers),
        "damage": [item._asdict() for item in report.damage],
    }


def _next_batch(batch: NextBatch) -> dict[str, Any]:
    end = None if batch.end is None else [_position(end) for end in batch.end]
    return batch._asdict() | {"start": [_position(end) for end in batch.start], "end": end}


def _position(end: SourceEnd) -> dict[str, Any]:
    return {"name": end.name, "index": end.index, "offset": offset_value(end.end)}


def _end(end: SourceEnd) -> dict[str, Any]:
    return {"name": end.name, "index": end.index, "end": offset_value(end.end)}


def _batch(line: BatchLine) -> dict[str, Any]:
    return {
        "id": line.id,
        "planned": line.planned,
        "committed": line.committed,
        "timestamp_ms": line.timestamp_ms,
        "watermark_ms": line.watermark_ms,
        "next_watermark_ms": line.next_watermark_ms,
        "sources": [_end(end) for end in line.sources],
    }


def _source(line: SourceLine) -> dict[str, Any]:
    log = line.log
    shown = None if log is None else {"first": log.first, "last": log.last, "files": log.files}
    if shown is not None and log is not None and log.entries:
        shown["entries"] = [  # type: ignore[assignment]  # only with --sources
            {"path": file.path, "timestamp_ms": file.timestamp_ms, "log_offset": file.log_offset}
            for file in log.entries
        ]
    return {
        "index": line.index,
        "name": line.name,
        "kind": line.kind,
        "log": shown,
        "initial": offset_value(line.initial),
    }


def _operator(line: OperatorLine) -> dict[str, Any]:
    return line._asdict() | {"stores": [_store(store) for store in line.stores], "properties": dict(line.properties)}


def _store(line: StoreLine) -> dict[str, Any]:
    return {
        "name": line.name,
        "provider": line.provider,
        "families": list(line.families),
        "versions": line.versions._asdict() | {"missing": list(line.versions.missing)},
        "rows": line.rows,
        "bytes": line.bytes,
    }
