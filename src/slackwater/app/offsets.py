"""Use case: the position of a stream for a manual restart, and what that would do to its sink."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from slackwater.app.deriving import reconcile, refuse_unreadable
from slackwater.app.watermark import next_watermark_ms
from slackwater.app.workspace import Workspace
from slackwater.errors import Refused
from slackwater.lease.lease import JVM_WAIT_S, wait_until_free
from slackwater.lease.view import view_of
from slackwater.model.history import History
from slackwater.model.plan import Request
from slackwater.model.profile import QueryProfile
from slackwater.model.snapshot import Snapshot
from slackwater.plan.basis import Basis
from slackwater.plan.batch_history import BatchHistory
from slackwater.plan.bounds import NOT_REPRODUCIBLE
from slackwater.plan.contributing import Code, StateBounds, first_contributing
from slackwater.plan.manual_restart import Effect, RestartFacts, effects_of
from slackwater.plan.rebuild import target_batch
from slackwater.plan.start_position import SourcePosition, position_after
from slackwater.recording.history import history_of
from slackwater.recording.snapshot import SnapshotContext, read_snapshot


@dataclass(frozen=True, slots=True)
class At:
    """Which position: after the last written batch, before the first contributing one, or after a batch by its id."""

    kind: Literal["last-written", "contributing", "batch"] = "last-written"
    batch: int | None = None

    def __str__(self) -> str:
        return self.kind if self.batch is None else f"batch:{self.batch}"


@dataclass(frozen=True, slots=True)
class Position:
    """``after`` is the batch after which a new query would start, -1 for the beginning; ``effects`` of doing so.

    ``descriptions`` names the sources as the query's own plan does, where a run recorded it.
    """

    stream: str
    at: At
    after: int
    written: int
    contributing: int | None
    running: bool
    sources: tuple[SourcePosition, ...]
    descriptions: tuple[str, ...]
    effects: tuple[Effect, ...]


@dataclass(frozen=True, slots=True)
class _Known:
    """The input from which the position is computed."""

    batches: BatchHistory
    snapshot: Snapshot

    @property
    def profile(self) -> QueryProfile | None:
        return self.snapshot.profile

    @property
    def written(self) -> int:
        """The newest batch in the sink; one that does not show it counts as holding what is committed."""
        return self.snapshot.written_or_committed

    @property
    def newest_written(self) -> int:
        """The newest recorded batch that the sink holds: what is open then is what a restart must not lose."""
        return max((batch for batch in self.batches.batches if batch <= self.written), default=-1)

    @property
    def watermark_ms(self) -> int:
        """The watermark of the batch after the newest written one, as far as it is recorded."""
        newest = self.newest_written
        if newest < 0:
            return 0
        planned = self.batches.offset(newest + 1) if newest + 1 in self.batches.batches else None
        return next_watermark_ms(planned, self.batches.offset(newest), self.batches.commit(newest))

    @property
    def not_reproducible(self) -> str | None:
        """Why the state cannot be recomputed by reading again."""
        operators = self.profile.operators if self.profile else ()
        return next((NOT_REPRODUCIBLE[operator] for operator in operators if operator in NOT_REPRODUCIBLE), None)

    @property
    def state(self) -> StateBounds:
        """What is known of the state. Where it cannot be recomputed at all, everything counts."""
        if self.profile is None:
            return StateBounds(self.snapshot.marks.state is not None, None, None)
        delays = self.profile.watermark_delays_ms
        everything = self.not_reproducible or self.snapshot.stream.output_mode == "complete"
        retention = None if everything else self.profile.retention_ms
        return StateBounds(self.profile.stateful, retention, delays[0] if len(delays) == 1 else None)


def offsets(workspace: Workspace, name: str, at: At, say: Callable[[str], None]) -> Position:
    """The position.

    Raises NotFound, DataError where the output cannot be read, Refused where it does not hold the batch asked for.
    """
    ledger = workspace.ledger
    stream = ledger.find_stream(name)
    running = view_of(ledger.lease(stream.full_name), ledger.now_ms()).state == "held"
    if not running:
        # The JVM of a killed driver may commit one more batch.
        wait_until_free(ledger, stream.full_name, wait_s=JVM_WAIT_S, say=say)
    reconcile(workspace, stream)
    snapshot = read_snapshot(SnapshotContext(ledger, workspace.home), stream)
    refuse_unreadable(snapshot)
    history = history_of(ledger, stream)
    known = _Known(BatchHistory(history), snapshot)
    request = Request.at(str(at))
    # The code that ran: what it read is what a restart would have to read again.
    code = Code(_code_of(history))
    target = target_batch(Basis("rebuild", snapshot, history, request, at.batch, code, number=0))
    contributing = _contributing(known, at, code)
    after = contributing - 1 if at.kind == "contributing" and contributing is not None else target
    sources = position_after(known.batches, after)
    return Position(
        stream=stream.full_name,
        at=at,
        after=after,
        written=known.written,
        contributing=contributing,
        running=running,
        sources=sources,
        descriptions=snapshot.profile.sources if snapshot.profile else (),
        effects=effects_of(_restart_facts(known, after, contributing, sources)),
    )


def _code_of(history: History) -> str:
    newest = max(history.runs, default=None)
    return (history.runs[newest].code if newest is not None else None) or ""


def _contributing(known: _Known, at: At, code: Code) -> int | None:
    if known.newest_written < 0:
        return 0
    try:
        return first_contributing(known.batches, known.newest_written, known.state, code)
    except Refused:
        if at.kind == "contributing":
            raise
        return None


def _restart_facts(
    known: _Known, after: int, contributing: int | None, sources: tuple[SourcePosition, ...]
) -> RestartFacts:
    return RestartFacts(
        written=known.written,
        after=after,
        contributing=contributing,
        stateful=known.state.stateful,
        source_kinds=tuple(source.kind for source in sources),
        input_rows=known.batches.history.input_rows,
        watermark_ms=known.watermark_ms,
        not_reproducible=known.not_reproducible,
        batches_skipped=known.snapshot.output.batches_skipped,
    )
