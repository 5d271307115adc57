"""The page of ``slackwater status``."""

from __future__ import annotations

from rich.console import Group
from rich.text import Text

from slackwater.app.lag import Lag
from slackwater.app.status import HomeStatus, StreamStatus
from slackwater.cli.render_words import counted, mark, number, span, timestamp
from slackwater.lease.view import LeaseView, expires_ms
from slackwater.model.finding import Finding, Severity
from slackwater.model.units import size_text

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
        *(_line("output", f"{one.name}, written {mark(one.written)}") for one in status.snapshot.output.members),
        _line("batch", f"{marks.next_batch} is next, {_next_text(status)}"),
        _line("lag", lag_text(status.lag)),
        _line("watermark", timestamp(status.watermark_ms)),
        _line("lease", lease_text(status.lease)),
        _line("last run", _run_text(status)),
    ]
    lines += [_line("also", finding.text) for finding in status.findings[1:]]
    lines += [_line("found", text) for text in _details(first)]
    if status.operation is not None:
        started = timestamp(status.operation.started_ms)
        lines.append(_line("operation", f"{status.operation.goal} {status.operation.id}, started {started}, not ended"))
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
    return "running now" if status.run_end in {"running", "stopping"} else "already planned, will run again"


def _line(label: str, text: str) -> Text:
    return Text(f"  {label:<{LABEL_WIDTH}}{text}")


def lease_text(view: LeaseView) -> str:
    """The holder of a lease, in one line."""
    lease = view.record
    if lease is None or lease.holder is None:
        return "free"
    holder = f"process {lease.holder.pid} on {lease.holder.host}"
    since = f"since {timestamp(lease.acquired_ms)} for {lease.purpose}"
    if view.state == "held":
        return f"held by {holder} {since}"
    if view.state == "only-jvm":
        return f"{holder} was killed; its JVM (process {lease.holder.jvm_pid}) still runs and may write"
    if view.state == "abandoned":
        return f"free (last held by {holder} {since}, which has exited)"
    return f"free (expired at {timestamp(expires_ms(lease))}; last held by {holder} {since})"


def _run_text(status: StreamStatus) -> str:
    run = status.run
    if run is None:
        return "none"
    text = f"{status.run_end}, started {timestamp(run.started_ms)}"
    if run.ended_ms is not None:
        text += f", ended {timestamp(run.ended_ms)} (after {span(run.ended_ms - run.started_ms)})"
    return text + (f": {run.reason}" if run.reason else "")
