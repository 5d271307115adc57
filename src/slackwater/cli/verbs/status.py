"""``slackwater status``: the state of the streams. Reads only."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from rich.console import Group
from rich.text import Text

from slackwater.cli.common.arguments import Format
from slackwater.cli.common.console import (
    Document,
    copied,
    iso,
    mark,
    marks_document,
    number,
    parse_interval,
    prepare,
    run_document,
    times,
    timestamp,
)
from slackwater.cli.common.pages import blocks, compared, heading, labelled_rows, marks_text, show, show_each
from slackwater.cli.common.stream_status import Lag, StreamStatus, home_place, stream_status
from slackwater.core.checkpoint import Depth
from slackwater.core.commands import check_command, command
from slackwater.core.errors import NotFound, SlackwaterError
from slackwater.core.facts import Severity
from slackwater.core.records import NEWEST_BATCHES
from slackwater.core.settings import Settings
from slackwater.core.units import counted, duration_text, size_text
from slackwater.ledger.home import Home, streams_of
from slackwater.ledger.lease import KILLED, LeaseView, expires_ms
from slackwater.ledger.workspace import Workspace, find_stream, open_workspace, restore_command

URGENCY = (3, 5, 7)
"""Exit codes of ``status``, the most urgent first: damaged, must not be started, failed."""
SCHEMA = "slackwater.status/1"
STYLES = {Severity.INFO: "green", Severity.WARNING: "yellow", Severity.STOP: "red"}


@dataclass(frozen=True, slots=True)
class HomeStatus:
    """The requested stream of a home, or all. ``lost`` have checkpoints, and no record in the ledger;
    ``unreadable`` an error."""

    home: str
    streams: tuple[StreamStatus, ...]
    lost: tuple[str, ...] = ()
    unreadable: tuple[tuple[str, SlackwaterError], ...] = ()

    @property
    def exit_code(self) -> int:
        """Returns 0 if every stream is in order, else the most urgent code."""
        if self.lost:
            return URGENCY[0]
        errors = [error.exit_code for _, error in self.unreadable]
        codes = {finding.exit_code for stream in self.streams for finding in stream.findings}.union(errors)
        return next((code for code in (*URGENCY, *errors) if code in codes), 0)


def read_status(settings: Settings, name: str | None = None, depth: Depth = "quick") -> HomeStatus:
    """The state of the streams; none without a ledger. NotFound for an unknown name. An unreadable stream does not hide
    others; the error of the only stream is raised.
    """
    try:
        with open_workspace(settings) as workspace:
            if name is None:
                return _all_streams(settings, workspace, depth)
            found = stream_status(workspace, find_stream(workspace.ledger, name), depth, place=home_place(workspace))
            return HomeStatus(str(settings.home), (found,))
    except NotFound as error:
        if name is None and error.code in {"ledger-missing", "ledger-lost"}:
            names = tuple(f"{pipeline}/{stream}" for pipeline, stream in streams_of(Home(settings.home)))
            return HomeStatus(str(settings.home), (), names)
        raise


def _all_streams(settings: Settings, workspace: Workspace, depth: Depth) -> HomeStatus:
    found: list[StreamStatus] = []
    unreadable: list[tuple[str, SlackwaterError]] = []
    in_home = [f"{pipeline}/{name}" for pipeline, name in workspace.in_home]
    place = home_place(workspace)
    known = workspace.ledger.stream_names()
    incomplete = dict(workspace.ledger.without_generation())
    for name in (*known, *(name for name in incomplete if name not in in_home)):
        try:
            if name in incomplete:
                # Raises NotFound: no ``stream.json`` restores the generation in use.
                workspace.ledger.generation(name, incomplete[name])
            found.append(stream_status(workspace, workspace.ledger.stream(name), depth, place=place))
        except SlackwaterError as error:
            unreadable.append((name, error))
    if len(unreadable) == 1 and not found:
        raise unreadable[0][1]
    lost = tuple(name for name in in_home if name not in known)
    return HomeStatus(str(settings.home), tuple(found), lost, tuple(unreadable))


def doctor_of(status: StreamStatus) -> str | None:
    serious = any(finding.severity is not Severity.INFO for finding in status.findings)
    return command("doctor", status.snapshot.stream.full_name) if serious else None


def status_document(home: HomeStatus) -> Document:
    streams = [_fields(stream) for stream in home.streams]
    unreadable = [{"stream": name, "error": error.as_dict()} for name, error in home.unreadable]
    return {"schema": SCHEMA, "home": home.home, "streams": streams, "lost": list(home.lost), "unreadable": unreadable}


def _fields(status: StreamStatus) -> Document:
    snapshot, first = status.snapshot, status.findings[0]
    stream, marks, output, left = snapshot.stream, snapshot.marks, snapshot.output, snapshot.operation
    problem = output.unreadable
    sink_error: Document | None = None
    if problem is not None:
        fields = problem.as_dict()
        sink_error = {"code": fields.pop("code"), "text": fields.pop("message"), **fields}
        if problem.aside:
            sink_error["aside"] = dict(zip(("batch", "command"), problem.aside, strict=True))
    lease: Document = {"state": status.lease.state}
    record = status.lease.record
    if record is not None and record.holder is not None:
        lease |= copied(record.holder, "host", "pid", "jvm_pid") | {"purpose": record.purpose}
        lease |= {"since": iso(record.acquired_ms)} | times(record, "heartbeat")
    return {
        "stream": stream.full_name,
        **copied(stream, "pipeline", "name"),
        "pipeline_file": stream.pipeline_file or None,
        "sink": dict(stream.sink),
        "delivery": asdict(output.delivery) if output.delivery is not None else None,
        "generation": stream.current_generation,
        "checkpoint": snapshot.generation.location,
        "moved_to": status.moved_to,
        "marks": marks_document(marks, "written", "pending_no_data"),
        "outputs": [
            copied(one, "kind", "location", "written", "batches_skipped", "can_cut")
            | {"delivery": asdict(one.delivery) if one.delivery is not None else None}
            for one in output.members
        ],
        "sink_error": sink_error,
        "orphans": list(output.orphans),
        "next_batch": marks.next_batch,
        "next_batch_planned": status.rerun,
        **{f"lag_{name}": value for name, value in asdict(status.lag).items()},
        **times(status, "watermark"),
        "late_rows": status.late_rows,
        "newest_batch": status.batch.batch_id if status.batch else None,
        "lease": lease,
        "last_run": run_document(snapshot.last_run, status.run_end) if snapshot.last_run else None,
        "operation": left and copied(left, "id", "goal", "status") | times(left, "started"),
        "verdict": copied(first, "code", "text"),
        "not_compared": list(status.not_compared),
        "findings": [
            {name: value for name, value in asdict(finding).items() if value is not None} for finding in status.findings
        ],
        **copied(first, "next", "advice"),
        "basis": {
            "files": [finding.code for finding in status.findings if finding.code not in status.from_plan],
            "recorded_plan": list(status.from_plan),
            "code": [],
        },
        "check": check_command(stream),
        "doctor": doctor_of(status),
    }


def status_page(home: HomeStatus) -> Group:
    if not (home.streams or home.lost or home.unreadable):
        return Group(Text(f"no stream has run in this home yet: {home.home}"))
    groups = [_block(stream) for stream in home.streams]
    for name, error in home.unreadable:
        first = heading(name, f"cannot be read: {error.message}", STYLES[Severity.STOP])
        found = ", ".join(filter(None, (f"code {error.code}", compared(error))))
        groups.append([first, *labelled_rows(("error", found), ("next", error.hint))])
    if home.lost:
        names = ", ".join(home.lost)
        lost = Text(f"the ledger has no record of {names}, whose checkpoints are in this home", style="red")
        groups.append([lost, Text(restore_command(home.lost[0]))])
    return blocks(groups, list)


def _block(status: StreamStatus) -> list[Text]:
    snapshot, first = status.snapshot, status.findings[0]
    marks, stream, run, left = snapshot.marks, snapshot.stream, snapshot.last_run, snapshot.operation
    title = heading(stream.full_name, f"generation {stream.current_generation}", "dim")
    title.append(f"  {first.text}", style=f"not bold {STYLES[first.severity]}")
    ahead = "running now" if status.run_end in {"running", "stopping"} else "already planned, will run again"
    late = f"{counted(status.late_rows, 'row')} dropped by the newest {NEWEST_BATCHES} batches: "
    late += command("ledger", stream.full_name)
    last_run, check = "none", check_command(stream)
    if run is not None:
        if run.ended_ms is None:
            ended = ""
        elif run.end == KILLED:
            ended = f", noticed {timestamp(run.ended_ms)}"
        else:
            ended = f", ended {timestamp(run.ended_ms)} (after {duration_text(run.ended_ms - run.started_ms)})"
        reason = f": {run.reason}" if run.reason else ""
        last_run = f"{status.run_end}, started {timestamp(run.started_ms)}{ended}{reason}"
    plan = f", for {', '.join(status.from_plan)} the recorded plan of the query" if status.from_plan else ""
    checked = f"files and batch ids{plan}, not the code{f': {check}' if check else ''}"
    moved = f"{status.moved_to} has this query; if it was moved: {command('adopt', status.moved_to or '')}"
    lines = labelled_rows(
        ("marks", marks_text(marks_document(marks, "written"))),
        *(("output", f"{one.name}, written {mark(one.written)}") for one in snapshot.output.members),
        ("batch", f"{marks.next_batch} is next, {ahead if status.rerun else 'to be planned'}"),
        ("lag", lag_text(status.lag)),
        ("watermark", timestamp(status.watermark_ms)),
        ("late", late if status.late_rows else None),
        ("lease", lease_text(status.lease)),
        ("last run", last_run),
        *(("sources", text) for text in status.not_compared),
        ("moved", moved if status.moved_to is not None else None),
        *(("also", finding.text) for finding in status.findings[1:]),
        ("found", compared(first) if first.severity is Severity.STOP else None),
        ("operation", left and f"{left.goal} {left.id}, started {timestamp(left.started_ms)}, not ended"),
        ("checked", checked),
        ("doctor", doctor_of(status)),
        ("next", first.next),
        ("next", first.advice),
    )
    return [title, *lines]


def lag_text(lag: Lag) -> str:
    parts = [f"{number(lag.rows)} rows"] if lag.rows is not None else []
    if lag.files is not None and lag.bytes is not None:
        parts.append(f"{counted(lag.files, 'unread file')}" + (f", {size_text(lag.bytes)}" if lag.files else ""))
    if lag.unknown is not None:
        parts.append(f"{'files ' if parts else ''}unknown: {lag.unknown}")
    return "; ".join(parts) or "-"


def lease_text(view: LeaseView) -> str:
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


def status(*, stream: str | None, verify: bool, watch: str | None, home: str | None, shown_as: Format) -> int:
    settings = prepare(home, shown_as)
    depth: Depth = "all" if verify else "quick"
    interval_s = parse_interval(watch, "The interval of --watch") if watch is not None else None
    found = read_status(settings, stream, depth)
    if interval_s is not None:
        return show_each(shown_as, interval_s, _looks(found, settings, stream, depth))
    show(shown_as, status_document(found), lambda: status_page(found))
    return found.exit_code


def _looks(found: HomeStatus, settings: Settings, stream: str | None, depth: Depth) -> Iterator[tuple[Document, Group]]:
    while True:
        yield status_document(found), status_page(found)
        try:
            found = read_status(settings, stream, depth)
        except SlackwaterError as error:
            # A failed reading does not end the watch.
            names = [one.snapshot.stream.full_name for one in found.streams] or [name for name, _ in found.unreadable]
            unreadable = tuple((name, error) for name in names or [found.home])
            found = HomeStatus(found.home, (), (), unreadable)
