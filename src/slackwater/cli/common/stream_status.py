"""What is known of one stream: its marks, lag, watermark, lease and findings. Nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from slackwater.checkpoint.opened import OpenedCheckpoint
from slackwater.cli.common.lag import Lag, stream_lag
from slackwater.cli.common.watermark import watermark_of
from slackwater.core.errors import unreachable
from slackwater.core.facts import Unknown
from slackwater.core.finding import Finding, Severity
from slackwater.core.history import NEWEST_BATCHES
from slackwater.core.marks import Marks
from slackwater.core.records import BatchRecord, OperationRecord, RunRecord, StreamRecord
from slackwater.core.snapshot import Snapshot
from slackwater.diagnose.number_line import codes_from_plan, findings
from slackwater.facts import served
from slackwater.facts.collect import facts_of_start
from slackwater.ledger.home.identity import Place, place_of
from slackwater.ledger.lease.view import LeaseView, end_of, view_of
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.located import moved_beside
from slackwater.ledger.recording.snapshot import SnapshotContext, look_at_stream
from slackwater.ledger.workspace import Workspace

SEARCHED_BATCHES = 20
"""How many batches before the newest known one may be without a progress event before the whole list is read."""


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """One stream. ``run_end`` is the last run's end as it is seen now; ``batch`` the newest with recorded progress.

    ``lag`` is what the sources hold beyond that batch, ``watermark_ms``
    that of the next batch. ``late_rows`` are those that the newest batches of the generation in use have dropped.
    ``findings`` are what the number line finds, and before it what sources no longer have; the most urgent first, never
    empty. ``not_compared`` says which sources did not answer, ``moved_to`` where a lost checkpoint may be.
    """

    snapshot: Snapshot
    findings: tuple[Finding, ...]
    batch: BatchRecord | None
    lag: Lag
    watermark_ms: int
    lease: LeaseView
    run_end: str | None
    not_compared: tuple[str, ...] = ()
    moved_to: str | None = None
    late_rows: int = 0

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
    def from_plan(self) -> tuple[str, ...]:
        """The codes of the findings that rest on the query's plan, as its last run recorded it."""
        return codes_from_plan(self.findings)

    @property
    def rerun(self) -> bool:
        """Whether the next batch has been planned already, so that its source range is fixed."""
        return self.marks.committed < self.marks.planned


def home_place(workspace: Workspace) -> Callable[[], Place]:
    """Looks up where the home of several streams is, once; an error is raised each time."""
    return cache(lambda: place_of(workspace.home, workspace.in_home))


def stream_status(
    workspace: Workspace, stream: StreamRecord, *, verify: bool = False, place: Callable[[], Place] | None = None
) -> StreamStatus:
    """The state of one stream; ``place`` as ``home_place`` returns it."""
    ledger = workspace.ledger
    # Before the snapshot: a run that ends meanwhile is then seen with its end, and never as killed.
    lease = view_of(ledger.lease(stream.full_name), ledger.now_ms())
    try:
        context = SnapshotContext(ledger, workspace.home, thorough=verify, place=place)
        snapshot, opened = look_at_stream(context, stream)
        found, not_compared = _compared(ledger, snapshot, opened)
    except OSError as error:
        raise unreachable(f"The checkpoint or the output of stream {stream.full_name}", error) from error
    batch = _newest(workspace, stream, max(snapshot.recorded.planned, snapshot.marks.planned))
    return StreamStatus(
        snapshot=snapshot,
        findings=found,
        batch=batch,
        lag=_lag(ledger, snapshot, batch),
        watermark_ms=watermark_of(snapshot),
        lease=lease,
        run_end=end_of(snapshot.last_run, lease) if snapshot.last_run else None,
        not_compared=not_compared,
        moved_to=moved_beside(ledger, stream),
        late_rows=ledger.late_rows(
            stream.full_name, stream.current_generation, max(snapshot.marks.planned - NEWEST_BATCHES, 0)
        ),
    )


def _compared(
    ledger: Ledger, snapshot: Snapshot, opened: OpenedCheckpoint
) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """The findings, with those of sources that have something else than was read; and which could not be compared."""
    found = findings(snapshot)
    if snapshot.holder is not None or any(finding.severity is Severity.STOP for finding in found):
        # A running query moves its positions meanwhile; and a start is refused for the other stop first.
        return found, ()
    sources = served.asked_sources(ledger, snapshot, opened)
    known = (fact for source in sources for fact in (source.unserved, source.changed_files))
    if any(fact and not isinstance(fact, Unknown) for fact in known):
        # All checks are loaded with it, which takes longer than the rest of the status.
        doctor: Any = import_module("slackwater.diagnose.doctor")
        found = doctor.found_at_start(facts_of_start(ledger, snapshot, opened, sources))
    return found, served.not_compared(sources)


def _lag(ledger: Ledger, snapshot: Snapshot, batch: BatchRecord | None) -> Lag:
    """The lag after the newest recorded batch, unless the user's program has committed later ones by itself since."""
    committed = snapshot.marks.committed
    if batch is None or not snapshot.stream.is_watched or snapshot.holder is not None or committed <= batch.batch_id:
        return stream_lag(ledger, batch)
    return Lag(unknown=f"no progress of batches {batch.batch_id + 1} to {committed} is recorded")


def _newest(workspace: Workspace, stream: StreamRecord, last: int) -> BatchRecord | None:
    recent: Sequence[BatchRecord] = workspace.ledger.batches(stream.full_name, first=max(last - SEARCHED_BATCHES, 0))
    if not recent:
        recent = workspace.ledger.batches(stream.full_name)
    return recent[-1] if recent else None
