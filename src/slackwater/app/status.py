"""Use case: the state of every stream of a home, and what comes next. Nothing is written, not even to the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from slackwater.app.lag import Lag, stream_lag
from slackwater.app.watermark import watermark_of
from slackwater.app.workspace import Workspace, open_workspace
from slackwater.diagnose.number_line import findings
from slackwater.errors import EnvironmentMissing, NotFound
from slackwater.lease.view import LeaseView, end_of, view_of
from slackwater.model.finding import Finding
from slackwater.model.marks import Marks
from slackwater.model.records import BatchRecord, OperationRecord, RunRecord, StreamRecord
from slackwater.model.snapshot import Snapshot
from slackwater.recording.snapshot import SnapshotContext, read_snapshot
from slackwater.settings import Settings

SEARCHED_BATCHES = 20
"""How many batches before the newest known one may be without a progress event before the whole list is read."""

URGENCY = (3, 5, 7)
"""Exit codes of ``status``, the most urgent first: damaged, must not be started, failed."""


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """One stream. ``run_end`` is the last run's end as it is seen now; ``batch`` the newest with recorded progress.

    ``lag`` is what the sources hold beyond that batch, ``watermark_ms``
    that of the next batch. ``findings`` are what the
    number line finds, the most urgent first; never empty.
    """

    snapshot: Snapshot
    findings: tuple[Finding, ...]
    batch: BatchRecord | None
    lag: Lag
    watermark_ms: int
    lease: LeaseView
    run_end: str | None

    @property
    def stream(self) -> StreamRecord:
        """The stream's record."""
        return self.snapshot.stream

    @property
    def marks(self) -> Marks:
        """The stream's marks."""
        return self.snapshot.marks

    @property
    def run(self) -> RunRecord | None:
        """The last run."""
        return self.snapshot.last_run

    @property
    def operation(self) -> OperationRecord | None:
        """The operation that has not ended."""
        return self.snapshot.operation

    @property
    def rerun(self) -> bool:
        """Whether the next batch has been planned already, so that its source range is fixed."""
        return self.marks.committed < self.marks.planned


@dataclass(frozen=True, slots=True)
class HomeStatus:
    """All streams of a home, or the one that was asked for."""

    home: str
    streams: tuple[StreamStatus, ...]

    @property
    def exit_code(self) -> int:
        """0 where every stream is in order, else the most urgent code of all findings."""
        codes = {finding.exit_code for stream in self.streams for finding in stream.findings}
        return next((code for code in URGENCY if code in codes), 0)


def status(settings: Settings, name: str | None = None, *, verify: bool = False) -> HomeStatus:
    """The state of the streams. A home without a ledger has no streams; NotFound where one was asked for by name.

    ``verify`` reads every file that the marks depend on. Raises EnvironmentMissing where a store cannot be reached.
    """
    try:
        with open_workspace(settings) as workspace:
            streams = workspace.ledger.streams() if name is None else [workspace.ledger.find_stream(name)]
            found = tuple(stream_status(workspace, stream, verify=verify) for stream in streams)
            return HomeStatus(str(settings.home), found)
    except NotFound as error:
        if name is None and error.code == "ledger-missing":
            return HomeStatus(str(settings.home), ())
        raise


def stream_status(workspace: Workspace, stream: StreamRecord, *, verify: bool = False) -> StreamStatus:
    """The state of one stream."""
    ledger = workspace.ledger
    lease = view_of(ledger.lease(stream.full_name), ledger.now_ms())
    try:
        snapshot = read_snapshot(SnapshotContext(ledger, workspace.home, thorough=verify), stream)
    except OSError as error:
        raise EnvironmentMissing(
            "store-unreachable",
            f"The checkpoint or the output of stream {stream.full_name} cannot be read",
            found=str(error),
            hint="check its address, and that you may read there",
        ) from error
    batch = _newest(workspace, stream, max(snapshot.recorded.planned, snapshot.marks.planned))
    return StreamStatus(
        snapshot=snapshot,
        findings=findings(snapshot),
        batch=batch,
        lag=stream_lag(ledger, batch),
        watermark_ms=watermark_of(snapshot),
        lease=lease,
        run_end=end_of(snapshot.last_run, lease) if snapshot.last_run else None,
    )


def _newest(workspace: Workspace, stream: StreamRecord, last: int) -> BatchRecord | None:
    recent: Sequence[BatchRecord] = workspace.ledger.batches(stream.full_name, first=max(last - SEARCHED_BATCHES, 0))
    if not recent:
        recent = workspace.ledger.batches(stream.full_name)
    return recent[-1] if recent else None
