"""Runs a stream: starts its query, restarts it after transient failures, drains it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slackwater.checkpoint.logs import read_logs
from slackwater.core.commands import command
from slackwater.core.errors import SlackwaterError
from slackwater.core.program import Trigger
from slackwater.core.records import StreamRecord
from slackwater.core.sink import WriteContext
from slackwater.diagnose.checks.common.snapshot import FAILURES
from slackwater.ledger.lease import LeaseCheck
from slackwater.runtime.program.logical_plan import analysed_plan, class_name, nodes_of
from slackwater.runtime.program.unsupported import check_left_out
from slackwater.runtime.run.before_start import check, claim_output, record_program, record_start, warnings_about
from slackwater.runtime.run.failures import SPARK_ERRORS, RunFailure, classify
from slackwater.runtime.run.listener import Drain
from slackwater.runtime.run.no_data_batch import NoDataBatch, check_reads_all
from slackwater.runtime.run.query import BuiltStream, QueryStart
from slackwater.runtime.run.query_run import End, QueryRun, RunServices
from slackwater.runtime.session.settings import overridden
from slackwater.storage.open import open_read_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


_ON_PROCESSING_TIME = "ProcessingTimeTimeout"
_IN_PROCESSING_TIME = "ProcessingTime"
_BATCHES_WITHOUT_DATA = 2
"""Counted under an unchanged watermark: the first such batch may advance a later operator's watermark."""


@dataclass(frozen=True, slots=True)
class StreamOutcome:
    """``reason``: why it failed or did not start.

    ``error``: raised before its query started.
    """

    stream: str
    end: End
    reason: str | None = None
    restarts: int = 0
    failure: RunFailure | None = None
    error: SlackwaterError | None = None


class StreamRun:
    """A stream's query runs, one at a time. Call ``poll`` until ``outcome`` is set."""

    def __init__(
        self, services: RunServices, stream: StreamRecord, built: BuiltStream, trigger: Trigger, epoch: int
    ) -> None:
        self.stream = stream
        self.outcome: StreamOutcome | None = None
        self._services = services
        self._built = built
        self._trigger = trigger
        self._epoch = epoch
        self._generation = services.ledger.generation(stream.full_name, stream.current_generation)
        newest = services.ledger.last_run(stream.full_name)
        self._run_before = newest.id if newest is not None else 0
        self._no_data = NoDataBatch(self._generation, stream.output_mode, built, services.ledger)
        self._restarts = Restarts(services.restarts_most)
        self._active: QueryRun | None = None
        self._drain: Drain | None = None
        self._committed_before = self._planned_before = -1
        self._has_timers: bool | None = None
        self._caught_up = False
        self._once_more = False
        self._warned: set[str] = set()

    @property
    def state(self) -> str:
        """The state in a word: running, draining, waiting (for a restart), or how it ended."""
        if self.outcome is not None:
            return self.outcome.end
        if self._active is None:
            return "waiting"
        return "running" if self._drain is None else "draining"

    @property
    def restarts(self) -> int:
        return self._restarts.total

    @property
    def query(self) -> StreamingQuery | None:
        return self._active.query if self._active is not None else None

    @property
    def starts_again(self) -> bool:
        return self._once_more and self.outcome is None

    def start(self) -> None:
        """Start the query. Raises SlackwaterError for a permanent failure.

        After a transient failure ``poll`` retries.
        """
        self._once_more = False
        if self._stop_is_pending():
            self._conclude("stopped")
            return
        try:
            ready = check(self._services.home, self._services.ledger, self.stream, query=self._built.sources)
            self._committed_before, self._planned_before = ready.committed, ready.planned
            about = warnings_about(self.stream, self._built, ready.committed)
            settings, place = self._built.definition.settings, self._generation.location
            newest = read_logs(open_read_store(place)).newest_offset if settings else None
            for warning in (*ready.warnings, *about, *overridden(self._built.definition, newest)):
                if warning not in self._warned:
                    self._services.say(f"{self.stream.full_name}: {warning}")
                    self._warned.add(warning)
            check_left_out(self._services.ledger, self._generation, ready.planned, self._built.frame)
            if self._trigger.kind == "available-now":
                check_reads_all(self.stream.full_name, self._built.frame)
            stream, partition_by = self.stream, self._built.definition.partition_by
            check_lease = LeaseCheck(self._services.ledger, stream.full_name, self._epoch)
            context = WriteContext(
                stream.id or "",
                stream.full_name,
                self._epoch,
                stream.output_mode,
                ready.planned,
                partition_by,
                check_lease,
            )
            # Before the first write: a driver that was paused, also while it waited for a restart, may have lost it.
            context.check_lease()
            claim_output(self._services.home, self.stream)
            self._built.definition.sink.check(self._built.frame, context)
            # Nothing refuses the start from here on; and the query, which may change state, is not started yet.
            record_start(self._services.home, self._services.ledger, self.stream)
            record_program(self._services.home, self._services.ledger, self._generation, self._built)
            how = QueryStart(self._trigger, context, completes_batch=self._completes(ready.completed_batch))
            # The completed batch may advance the watermark: the start after it plans the batch without data.
            if not how.completes_batch:
                planned, message = self._no_data.plan()
                if message:
                    self._services.say(f"{self.stream.full_name}: {message}")
                # A query that runs one batch would run this one and leave the data that is there.
                self._once_more = planned and self._trigger.kind == "once"
            self._active = QueryRun(self._services, self._generation, self._built, how, ready.copier)
        except SlackwaterError as error:
            failure = classify(error)
            if not self._may_restart(failure):
                raise
            self._wait_for_restart(failure)

    def poll(self, *, drain: bool = False) -> None:
        """Check the query and restart it if needed. Never raises.

        ``drain``: end after the running batch.
        """
        if self.outcome is not None:
            return
        try:
            if drain:
                self._request_drain()
            self._advance()
        except SlackwaterError as error:
            self._conclude("failed", classify(error))
        except SPARK_ERRORS as error:
            # A JVM that was killed is a failure of its streams: each of them has an outcome, and the run ends as usual.
            self._conclude("failed", _lost_spark(error))

    def interrupt(self, reason: str | None = None) -> None:
        """Stop within the batch, which the next start runs again."""
        if self.outcome is not None:
            return
        try:
            if self._active is not None:
                self._active.query.stop()
        except SPARK_ERRORS as error:
            self._conclude("failed", _lost_spark(error))
            return
        self._conclude("interrupted", reason=reason)

    def stop_requested(self) -> bool:
        return self._active is not None and self._active.stop_requested()

    def _completes(self, batch: int | None) -> bool:
        # In real-time mode Spark writes ``offsets/N`` when batch N has ended: there is no planned batch to complete.
        if batch is None or not self._trigger.in_micro_batches:
            return False
        self._services.say(
            f"{self.stream.full_name}: the sink has batch {batch}, which is not committed: it is completed first, "
            "without being written again"
        )
        self._once_more = True
        return True

    def _advance(self) -> None:
        if self._active is None:
            if self.outcome is None and self._restarts.due:
                self.start()
        elif self._drain is not None:
            if self._drain.finished():
                # A drain lets the running batch end, and that batch may fail like any other.
                error = self._active.query.exception()
                ended: End = "finished" if self._caught_up else "stopped"
                self._conclude("failed" if error else ended, classify(error) if error else None)
        elif self._active.query.isActive:
            self._active.record_end()
            self._active.record_stores()
            if self._has_read_all(self._active):
                self._caught_up = True
                self._request_drain()
        else:
            self._handle_end(self._active)

    def _has_read_all(self, run: QueryRun) -> bool:
        """Return whether the query has read all data; Spark may plan more batches for timers."""
        if self._trigger.kind != "available-now" or self._once_more:
            return False
        if self._has_timers is None:
            self._has_timers = _has_processing_time_timers(self._built.frame)
        return self._has_timers and has_read_all(run.query, self._planned_before)

    def _request_drain(self) -> None:
        if self._active is None:
            # It waits for a restart: there is no batch to wait for.
            self._conclude("stopped")
        elif self._drain is None:
            self._drain = Drain(self._active.query)
            self._drain.start()

    def _handle_end(self, run: QueryRun) -> None:
        error = run.query.exception()
        if error is None and self._once_more:
            self._active = None
            run.end("finished")
            self.start()
            return
        if error is None:
            self._conclude("finished")
            return
        failure = classify(error)
        if not self._may_restart(failure):
            self._conclude("failed", failure)
            return
        self._active = None
        run.end("failed", failure)
        self._wait_for_restart(failure)

    def _may_restart(self, failure: RunFailure) -> bool:
        if failure.kind == "permanent":
            return False
        if self._has_progressed():
            self._restarts.progressed()
        return self._restarts.left

    def _has_progressed(self) -> bool:
        """Return whether a batch was committed since the last start: the stream is not stuck then."""
        try:
            committed = read_logs(open_read_store(self._generation.location)).committed
        except OSError:
            # Without the store no progress is shown: the restart counts, and the limit of restarts ends the stream.
            return False
        if committed <= self._committed_before:
            return False
        # These batches count once, also where the next start fails before it has read the checkpoint.
        self._committed_before = committed
        return True

    def _wait_for_restart(self, failure: RunFailure) -> None:
        stops = self._stop_is_pending()
        then = "not restarted, as a stop was requested" if stops else self._restarts.plan_next()
        self._services.say(f"{self.stream.full_name}: {failure.reason}; {then}")
        if stops:
            self._conclude("stopped")

    def _stop_is_pending(self) -> bool:
        try:
            last = self._services.ledger.last_run(self.stream.full_name)
        except SlackwaterError:
            # The start that follows fails for this reason, and the one after it asks again.
            return False
        return last is not None and last.id > self._run_before and last.stop_requested_ms is not None

    def _conclude(self, end: End, failure: RunFailure | None = None, *, reason: str | None = None) -> None:
        run, self._active, self._drain = self._active, None, None
        if run is not None:
            run.end(end, failure, reason)
            if end in ("finished", "stopped"):
                self._no_data.record_caught_up(self._trigger)
        shown = failure.reason if failure else reason
        meaning, goal = FAILURES.get(failure.code if failure else "", ("", None))
        if goal is not None:
            self._services.say(
                f"{self.stream.full_name}: {meaning}; next: {command('plan', goal, self.stream.full_name)}"
            )
        self.outcome = StreamOutcome(self.stream.full_name, end, shown, self._restarts.total, failure)


def _lost_spark(error: BaseException) -> RunFailure:
    failure = classify(error)
    return RunFailure(failure.kind, failure.code, f"Spark no longer answers: {failure.reason}", failure.place)


FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 60.0
_DOUBLINGS = 6
"""The number of doublings after which the wait is longest."""


class Restarts:
    """Allows at most ``most`` in a row; a committed batch resets the count."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._in_a_row = 0
        self._due_at = 0.0
        self.total = 0

    @property
    def left(self) -> bool:
        return self._in_a_row < self._most

    @property
    def due(self) -> bool:
        return time.monotonic() >= self._due_at

    def progressed(self) -> None:
        self._in_a_row = 0

    def plan_next(self) -> str:
        wait_s = min(FIRST_WAIT_S * 2 ** min(self._in_a_row, _DOUBLINGS), LONGEST_WAIT_S)
        self.total += 1
        self._in_a_row += 1
        self._due_at = time.monotonic() + wait_s
        return f"restart {self._in_a_row} of {self._most} in {wait_s:.0f} s"


def _has_processing_time_timers(frame: DataFrame) -> bool:
    """Return whether a stateful operator has processing-time timers.

    Spark plans batches for them even without data. ``available-now`` ends a query when no batch is planned
    (``MicroBatchExecution.constructNextBatch``); a timeout or time-to-live on processing time always plans a batch, as
    ``shouldRunAnotherBatch`` is true after each batch (``FlatMapGroupsWithStateExec``, ``TransformWithStateExec``).
    Such a query is caught up when its sources are at the positions fixed at its start: later batches start and end
    there.
    """
    for node in nodes_of(analysed_plan(frame)):
        name = class_name(node)
        if name.startswith("FlatMapGroups") and name.endswith("WithState"):
            if str(node.timeout()) == _ON_PROCESSING_TIME:
                return True
        elif name.startswith("TransformWithState") and str(node.timeMode()).startswith(_IN_PROCESSING_TIME):
            return True
    return False


def has_read_all(query: StreamingQuery, planned_before: int) -> bool:
    """Return whether the newest batches of this run read nothing though they could have."""
    newest = query.recentProgress[-_BATCHES_WITHOUT_DATA:]
    batches = {progress["batchId"] for progress in newest}
    # Spark 3.5 leaves out what is empty.
    watermarks = {progress.get("eventTime", {}).get("watermark") for progress in newest}
    return (
        len(batches) == _BATCHES_WITHOUT_DATA
        and min(batches) > planned_before
        and len(watermarks) == 1
        # A range can move without rows: Kafka's transaction markers have offsets of their own.
        and not any(
            source["numInputRows"] or source["startOffset"] != source["endOffset"]
            for progress in newest
            for source in progress["sources"]
        )
    )
