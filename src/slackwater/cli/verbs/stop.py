"""``slackwater stop``: asks a run in another process to end between two batches."""

import time

from slackwater.cli.common.arguments import Format
from slackwater.cli.common.console import parse_seconds, prepare, say
from slackwater.cli.common.pages import show
from slackwater.core.commands import command
from slackwater.core.errors import NotFound, OutcomeUnknown
from slackwater.core.records import RunRecord, StreamRecord
from slackwater.ledger.lease import KILLED, RUN, LeaseView, is_running, view_of
from slackwater.ledger.sqlite import Say
from slackwater.ledger.workspace import Workspace, find_stream, open_workspace

POLL_S = 0.2
SCHEMA = "slackwater.stop/1"


def stop_stream(workspace: Workspace, stream: StreamRecord, wait_s: float, say: Say) -> tuple[int | None, str | None]:
    """Ask, then wait up to ``wait_s`` seconds. Raises NotFound if the stream does not run. Returns the run, ``None`` if
    none was active within the wait, and its end, ``None`` if it still runs.
    """
    deadline = time.monotonic() + wait_s
    _refuse_unless_held_by_run(stream, view_of(workspace.ledger, stream.full_name))
    run = _ask(workspace, stream, deadline, say)
    if run is None:
        return None, None
    while True:
        # Before the run is read: a run records its end before it releases the lease, so that the end is not missed.
        lease = view_of(workspace.ledger, stream.full_name)
        last = workspace.ledger.last_run(stream.full_name)
        if last is None or last.id != run.id:
            # A newer run has started, so that the one that was asked has ended.
            return run.id, "ended"
        if last.end is not None:
            return run.id, last.end
        if lease.state in {"abandoned", "expired", "free"}:
            # A driver records the end before it releases the lease; of this one the ledger was unreachable.
            return run.id, KILLED
        if time.monotonic() >= deadline:
            return run.id, None
        time.sleep(POLL_S)


def _ask(workspace: Workspace, stream: StreamRecord, deadline: float, say: Say) -> RunRecord | None:
    """A run that is starting, or waiting for a restart, is asked as soon as it runs."""
    announced = False
    while True:
        lease = view_of(workspace.ledger, stream.full_name)
        if is_running(workspace.ledger.last_run(stream.full_name), lease):
            run = workspace.ledger.request_stop(stream.full_name)
            if run is not None:
                return run
        _refuse_unless_held_by_run(stream, lease)
        if time.monotonic() >= deadline:
            return None
        if not announced:
            say(f"{stream.full_name} is between two starts; it will be asked as soon as its query runs")
            announced = True
        time.sleep(POLL_S)


def _refuse_unless_held_by_run(stream: StreamRecord, lease: LeaseView) -> None:
    purpose = lease.record.purpose if lease.record else ""
    if lease.state == "held" and purpose == RUN:
        return
    reasons = {
        "free": "no process holds it",
        "held": f"it is held for {purpose}, which ends by itself",
        "only-jvm": "its driver was killed, and its JVM is about to end",
        "abandoned": "its driver was killed",
        "expired": "its driver has not sent a heartbeat for too long",
    }
    raise NotFound(
        "not-running",
        f"Stream {stream.full_name} does not run: {reasons[lease.state]}",
        hint=command("status", stream.full_name),
    )


def stop(*, stream: str, wait: str, home: str | None, shown_as: Format) -> int:
    settings, wait_s = prepare(home, shown_as), parse_seconds(wait)
    with open_workspace(settings) as workspace:
        found = find_stream(workspace.ledger, stream)
        run, end = stop_stream(workspace, found, wait_s, say)
    name = found.full_name
    if run is None:
        raise OutcomeUnknown(
            "stop-pending",
            f"Stream {name} was not asked to stop: its query did not run within {wait_s:g} s",
            hint=f"wait for its next start: {command('stop', name, '--wait', '10m')}",
        )
    if end is None:
        raise OutcomeUnknown(
            "stop-pending",
            f"Stream {name} was asked to stop and had not ended after {wait_s:g} s; it ends after its batch",
            hint=f"{command('status', name)}; or wait again: {command('stop', name, '--wait', '10m')}",
        )
    show(shown_as, {"schema": SCHEMA, "stream": name, "run": run, "end": end}, lambda: f"{name}: {end}")
    return 0
