"""The document ``slackwater.status/1``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from slackwater.app.documents.values import iso
from slackwater.app.status import HomeStatus, StreamStatus
from slackwater.lease.view import LeaseView
from slackwater.model.finding import Finding

SCHEMA = "slackwater.status/1"


def status_document(home: HomeStatus) -> dict[str, Any]:
    """All streams of a home."""
    return {"schema": SCHEMA, "home": home.home, "streams": [_fields(stream) for stream in home.streams]}


def _fields(status: StreamStatus) -> dict[str, Any]:
    stream, marks = status.stream, status.marks
    return {
        "stream": stream.full_name,
        "pipeline": stream.pipeline,
        "name": stream.name,
        "pipeline_file": stream.pipeline_file or None,
        "sink": dict(stream.sink),
        "delivery": _delivery(status),
        "generation": stream.current_generation,
        "checkpoint": status.snapshot.generation.location,
        "marks": {
            "planned": marks.planned,
            "committed": marks.committed,
            "state": marks.state,
            "written": marks.written,
            "owed": marks.owed,
        },
        "outputs": [asdict(output) for output in status.snapshot.output.members],
        "sink_error": _unreadable(status),
        "orphans": list(status.snapshot.output.orphans),
        "next_batch": marks.next_batch,
        "next_batch_planned": status.rerun,
        "lag_rows": status.lag.rows,
        "lag_files": status.lag.files,
        "lag_bytes": status.lag.bytes,
        "lag_unknown": status.lag.unknown,
        "watermark": iso(status.watermark_ms),
        "newest_batch": status.batch.batch_id if status.batch else None,
        "lease": _lease_fields(status.lease),
        "last_run": _run_fields(status),
        "operation": _operation_fields(status),
        "verdict": {"code": status.findings[0].code, "text": status.findings[0].text},
        "findings": [_finding_fields(finding) for finding in status.findings],
        "next": status.findings[0].next,
    }


def _unreadable(status: StreamStatus) -> dict[str, Any] | None:
    problem = status.snapshot.output.unreadable
    return {key: value for key, value in asdict(problem).items() if value is not None} if problem else None


def _delivery(status: StreamStatus) -> dict[str, Any] | None:
    delivery = status.snapshot.output.delivery
    return asdict(delivery) if delivery is not None else None


def _finding_fields(finding: Finding) -> dict[str, Any]:
    fields = {**asdict(finding), "severity": str(finding.severity)}
    return {key: value for key, value in fields.items() if value is not None}


def _lease_fields(view: LeaseView) -> dict[str, Any]:
    lease = view.record
    if lease is None or lease.holder is None:
        return {"state": view.state}
    return {
        "state": view.state,
        "host": lease.holder.host,
        "pid": lease.holder.pid,
        "jvm_pid": lease.holder.jvm_pid,
        "purpose": lease.purpose,
        "since": iso(lease.acquired_ms),
        "heartbeat": iso(lease.heartbeat_ms),
    }


def _run_fields(status: StreamStatus) -> dict[str, Any] | None:
    run = status.run
    if run is None:
        return None
    return {
        "id": run.id,
        "generation": run.generation,
        "spark_version": run.spark_version,
        "started": iso(run.started_ms),
        "ended": iso(run.ended_ms),
        "end": status.run_end,
        "reason": run.reason,
    }


def _operation_fields(status: StreamStatus) -> dict[str, Any] | None:
    left = status.operation
    if left is None:
        return None
    return {"id": left.id, "goal": left.goal, "status": left.status, "started": iso(left.started_ms)}
