"""Use case: where every stream of a home stands. Nothing is written, not even to the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from slackwater.app.lag import lag_of
from slackwater.app.stream_facts import marks_or_none, profile_of
from slackwater.app.verdict import Seen, Verdict, verdict_of
from slackwater.app.workspace import Workspace, open_workspace
from slackwater.errors import NotFound, SinkUnreadable
from slackwater.lease.view import LeaseView, end_of, view_of
from slackwater.model.marks import Marks
from slackwater.model.records import BatchRecord, OperationRecord, RunRecord, StreamRecord
from slackwater.settings import Settings

LOOK_BACK = 20
"""How many batches before the newest known one may be without a progress event before the whole list is read."""


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """One stream. ``run_end`` is the last run's end as it is seen now; ``batch`` the newest one that told its progress.

    ``lag`` counts rows the sources hold beyond that batch, ``None`` where no source tells.
    """

    stream: StreamRecord
    location: str
    marks: Marks
    sink_error: SinkUnreadable | None
    batch: BatchRecord | None
    lag: int | None
    lease: LeaseView
    run: RunRecord | None
    run_end: str | None
    operation: OperationRecord | None
    verdict: Verdict

    @property
    def rerun(self) -> bool:
        """Whether the next batch has been planned already, so that its source range is fixed."""
        return self.marks.committed < self.marks.planned


@dataclass(frozen=True, slots=True)
class HomeStatus:
    """All streams of a home, or the one that was asked for."""

    home: str
    streams: tuple[StreamStatus, ...]


def status(settings: Settings, name: str | None = None) -> HomeStatus:
    """Where the streams stand. A home without a ledger has no streams; NotFound where one was asked for by name."""
    try:
        with open_workspace(settings) as workspace:
            streams = workspace.ledger.streams() if name is None else [workspace.ledger.find_stream(name)]
            return HomeStatus(str(settings.home), tuple(stream_status(workspace, stream) for stream in streams))
    except NotFound as error:
        if name is None and error.code == "ledger-missing":
            return HomeStatus(str(settings.home), ())
        raise


def stream_status(workspace: Workspace, stream: StreamRecord) -> StreamStatus:
    """Where one stream stands."""
    ledger = workspace.ledger
    # The lease first: a run that ends meanwhile is then seen with its end, and never as killed.
    lease = view_of(ledger.lease(stream.full_name), ledger.now_ms())
    run = ledger.last_run(stream.full_name)
    marks, sink_error = marks_or_none(workspace, stream)
    generation = ledger.generation(stream.full_name, stream.current_generation)
    recorded = max(ledger.entries(stream.full_name, "offsets"), default=-1)
    batch = _newest(workspace, stream, max(recorded, marks.planned))
    operation = ledger.open_operation(stream.full_name)
    silent = sink_error is not None and sink_error.code == "sink-silent"
    seen = Seen(
        stream=stream,
        marks=marks,
        recorded=recorded,
        sink_error=None if sink_error is None or silent else sink_error.message,
        profile=profile_of(generation),
        operation=operation,
        working=lease.record.purpose if lease.state == "held" and lease.record else None,
    )
    return StreamStatus(
        stream=stream,
        location=generation.location,
        marks=marks,
        sink_error=sink_error,
        batch=batch,
        lag=lag_of(batch) if batch else None,
        lease=lease,
        run=run,
        run_end=end_of(run, lease) if run else None,
        operation=operation,
        verdict=verdict_of(seen),
    )


def _newest(workspace: Workspace, stream: StreamRecord, last: int) -> BatchRecord | None:
    recent: Sequence[BatchRecord] = workspace.ledger.batches(stream.full_name, first=max(last - LOOK_BACK, 0))
    if not recent:
        recent = workspace.ledger.batches(stream.full_name)
    return recent[-1] if recent else None
