"""The status of a home, as a page and as a document."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.console import Group
from rich.text import Text

from slackwater.app.lag import Lag
from slackwater.app.status import HomeStatus, StreamStatus
from slackwater.cli.render_words import counted, iso, mark, moment, number, span
from slackwater.lease.view import LeaseView, expires_ms
from slackwater.model.finding import Finding, Severity
from slackwater.model.units import size_text

SCHEMA = "slackwater.status/1"
LABEL_WIDTH = 11
STYLES = {Severity.INFO: "green", Severity.WARNING: "yellow", Severity.STOP: "red"}


def status_page(home: HomeStatus) -> Group:
    """A block for each stream."""
    if not home.streams:
        return Group(Text(f"no stream has run in this home yet: {home.home}"))
    parts: list[Text] = []
    for stream in home.streams:
        parts += [Text()] if parts else []
        parts += _block(stream)
    return Group(*parts)


def status_document(home: HomeStatus) -> dict[str, Any]:
    """The document ``slackwater.status/1``; docs/json.md tells every field."""
    return {"schema": SCHEMA, "home": home.home, "streams": [_fields(stream) for stream in home.streams]}


def _block(status: StreamStatus) -> list[Text]:
    marks, first = status.marks, status.findings[0]
    heading = Text(status.stream.full_name, style="bold")
    heading.append(f"  generation {status.stream.current_generation}", style="not bold dim")
    heading.append(f"  {first.text}", style=f"not bold {STYLES[first.severity]}")
    lines = [
        heading,
        _line(
            "marks",
            f"planned {mark(marks.planned)}, committed {mark(marks.committed)}, state {mark(marks.state)}, "
            f"written {mark(marks.written)}",
        ),
        _line("batch", f"{marks.next_batch} is next, {_next_text(status)}"),
        _line("lag", lag_text(status.lag)),
        _line("watermark", moment(status.watermark_ms)),
        _line("lease", lease_text(status.lease)),
        _line("last run", _run_text(status)),
    ]
    lines += [_line("also", finding.text) for finding in status.findings[1:]]
    lines += [_line("found", text) for text in _details(first)]
    if status.operation is not None:
        began = moment(status.operation.started_ms)
        lines.append(_line("operation", f"{status.operation.goal} {status.operation.id}, begun {began}, not ended"))
    lines += [_line("next", step) for step in (first.next, first.advice) if step is not None]
    return lines


def lag_text(lag: Lag) -> str:
    """What the sources hold beyond the newest batch, in one line; ``-`` where no source reports it."""
    parts = [f"{number(lag.rows)} rows"] if lag.rows is not None else []
    if lag.files is not None and lag.bytes is not None:
        parts.append(f"{counted(lag.files, 'unread file')}" + (f", {size_text(lag.bytes)}" if lag.files else ""))
    if lag.unknown is not None:
        parts.append(f"files unknown: {lag.unknown}")
    return "; ".join(parts) or "-"


def _details(finding: Finding) -> list[str]:
    if finding.severity is not Severity.STOP:
        return []
    pairs = (("at", finding.where), ("expected", finding.expected), ("found", finding.found))
    return [", ".join(f"{name} {value}" for name, value in pairs if value)] if any(value for _, value in pairs) else []


def _next_text(status: StreamStatus) -> str:
    if not status.rerun:
        return "to be planned"
    return "under way" if status.run_end in {"running", "stopping"} else "planned already, to be run again"


def _line(label: str, text: str) -> Text:
    return Text(f"  {label:<{LABEL_WIDTH}}{text}")


def lease_text(view: LeaseView) -> str:
    """Who holds a lease, in one line."""
    lease = view.record
    if lease is None or lease.holder is None:
        return "free"
    holder = f"process {lease.holder.pid} on {lease.holder.host}"
    since = f"since {moment(lease.acquired_ms)} for {lease.purpose}"
    if view.state == "held":
        return f"held by {holder} {since}"
    if view.state == "only-jvm":
        return f"{holder} was killed; its JVM (process {lease.holder.jvm_pid}) still lives and may write"
    if view.state == "abandoned":
        return f"free: {holder} held it {since} and is gone"
    return f"free: it expired at {moment(expires_ms(lease))}; {holder} held it {since}"


def _run_text(status: StreamStatus) -> str:
    run = status.run
    if run is None:
        return "none"
    text = f"{status.run_end}, begun {moment(run.started_ms)}"
    if run.ended_ms is not None:
        text += f", ended {moment(run.ended_ms)} (after {span(run.ended_ms - run.started_ms)})"
    return text + (f": {run.reason}" if run.reason else "")


def _fields(status: StreamStatus) -> dict[str, Any]:
    stream, marks = status.stream, status.marks
    return {
        "stream": stream.full_name,
        "pipeline": stream.pipeline,
        "name": stream.name,
        "pipeline_file": stream.pipeline_file or None,
        "sink": dict(stream.sink),
        "generation": stream.current_generation,
        "checkpoint": status.snapshot.generation.location,
        "marks": {
            "planned": marks.planned,
            "committed": marks.committed,
            "state": marks.state,
            "written": marks.written,
            "owed": marks.owed,
        },
        "sink_error": _unreadable(status),
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
