"""Runs a stream: starts its query, restarts it after transient failures, drains it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

import structlog

from slackwater.checkpoint.logs import read_logs
from slackwater.checkpoint.operators import state_stores
from slackwater.core.commands import command
from slackwater.core.errors import SlackwaterError
from slackwater.core.program import Trigger
from slackwater.core.records import GenerationRecord, RunRecord, StreamRecord
from slackwater.core.sink import WriteContext
from slackwater.diagnose.checks.common.snapshot import FAILURES
from slackwater.ledger.home import Home
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.recording.log_copier import LogCopier
from slackwater.ledger.recording.stream_files import write_stream_file_of
from slackwater.ledger.recording.watcher import Watcher
from slackwater.runtime.program.code_reach import environment_settings
from slackwater.runtime.program.logical_plan import analysed_plan, class_name, nodes_of
from slackwater.runtime.program.unsupported import check_left_out
from slackwater.runtime.replay.replay_query import InputWatermarkKeeper
from slackwater.runtime.run.before_start import (
    check,
    claim_output,
    program_digest,
    record_program,
    record_start,
    warnings_about,
)
from slackwater.runtime.run.failures import KNOWN_ERRORS, SPARK_ERRORS, UNREADABLE, RunFailure, classify
from slackwater.runtime.run.listener import Drain, ProgressRecorder, RecordedQuery
from slackwater.runtime.run.no_data_batch import EndOfRun, NoDataBatch, check_reads_all
from slackwater.runtime.run.query import BuiltStream, start, write_context
from slackwater.runtime.session.settings import effective_settings, overridden
from slackwater.storage.open import open_read_store
from slackwater.triggers import waits_ms

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


_ON_PROCESSING_TIME = "ProcessingTimeTimeout"
_IN_PROCESSING_TIME = "ProcessingTime"
_BATCHES_WITHOUT_DATA = 2
"""Counted under an unchanged watermark: the first such batch may advance a later operator's watermark."""

STORES_EVERY_S = 1.0

log = structlog.get_logger(__name__)

End = Literal["finished", "stopped", "interrupted", "failed", "not-started"]


@dataclass(frozen=True, slots=True)
class RunServices:
    """``restarts_most`` limits restarts without a committed batch; ``code`` is the pipeline file's SHA-256."""

    home: Home
    ledger: Ledger
    recorder: ProgressRecorder
    spark_version: str
    restarts_most: int
    say: Callable[[str], None]
    code: str | None = None
    accepted: Mapping[str, Mapping[str, object]] = field(default_factory=dict)


class QueryRun:
    def __init__(
        self,
        services: RunServices,
        generation: GenerationRecord,
        built: BuiltStream,
        copier: LogCopier,
        *,
        trigger: Trigger,
        context: WriteContext,
        completes_batch: bool = False,
    ) -> None:
        """Start the query. A failed start ends the run as failed, and its error is raised."""
        self._ledger = services.ledger
        self._home = services.home
        self._generation = generation
        self._checkpoint = open_read_store(generation.location)
        self._profile = built.profile
        self._stores_due_at = 0.0
        self._end: EndOfRun | None = None
        self._ledger_unreachable = False
        self._run: RunRecord = services.ledger.begin_run(
            generation.stream,
            generation.number,
            services.spark_version,
            settings={
                **effective_settings(built.frame.sparkSession),
                **environment_settings(built.program, built.frame.sparkSession),
            },
            code=services.code,
            program=program_digest(built.program),
            accepted=services.accepted.get(generation.stream),
            trigger_ms=waits_ms(trigger),
        )
        recorded = RecordedQuery(generation.stream, generation.number, self._run.id)
        services.recorder.follow(generation.stream, recorded)
        # Before the query: killed in its first batch, only the checkpoint would have the range that was planned.
        self._watcher = Watcher(copier)
        self._watcher.start()
        try:
            keeper = InputWatermarkKeeper(
                services.ledger, generation, built.profile, built.frame.sparkSession, services.say
            )
            with keeper.starting():
                self.query: StreamingQuery = start(
                    built, generation.location, trigger, context, completes_batch=completes_batch
                )
            # A sink may have named the query itself: the name of a memory table is that of its query.
            services.recorder.follow(str(self.query.id), recorded)
        except BaseException as error:
            self.end("failed", classify(error))
            raise
        if trigger.kind == "available-now" and not completes_batch:
            self._end = EndOfRun(self.query, services.ledger, generation, self._run.id)
        # Errors do not stop the query.
        if self._profile is None:
            return
        try:
            layout = self._profile.as_json()
            self._ledger.update_generation(
                generation.stream, generation.number, query_id=str(self.query.id), layout=layout
            )
            self._ledger.record_rows_digest(self._run.id, self._profile.rows_digest)
            write_stream_file_of(self._home, self._ledger, generation.stream)
        except KNOWN_ERRORS as error:
            log.warning("the query's plan was not recorded", stream=generation.stream, error=str(error))

    def record_stores(self) -> None:
        if self._profile is None or time.monotonic() < self._stores_due_at:
            return
        self._stores_due_at = time.monotonic() + STORES_EVERY_S
        try:
            # Tasks create the stores of their partitions: only with a commit are all of them there.
            if self._profile.stateful and read_logs(self._checkpoint).committed < 0:
                return
            layout = {**self._profile.as_json(), "state_stores": state_stores(self._checkpoint)}
            self._ledger.update_generation(self._generation.stream, self._generation.number, layout=layout)
            # A lost ledger is restored from ``stream.json``, which therefore follows each change of a generation.
            write_stream_file_of(self._home, self._ledger, self._generation.stream)
            self._stores_due_at = math.inf
        except (SlackwaterError, OSError) as error:
            log.warning("the state stores were not recorded", stream=self._generation.stream, error=str(error))

    def record_end(self) -> None:
        if self._end is None:
            return
        try:
            if self._end.record():
                self._end = None
        except UNREADABLE as error:
            # Without this record the next start asks the sources whether they have unread data.
            self._end = None
            log.warning("the end of the run was not recorded", stream=self._generation.stream, error=str(error))

    def stop_requested(self) -> bool:
        try:
            requested = self._ledger.stop_requested(self._run.id)
        except SlackwaterError as error:
            # Asked every second: one warning for an outage is enough.
            if not self._ledger_unreachable:
                log.warning("cannot read stop requests", stream=self._generation.stream, error=str(error))
            self._ledger_unreachable = True
            return False
        self._ledger_unreachable = False
        return requested

    def end(self, end: End, failure: RunFailure | None = None, reason: str | None = None) -> None:
        """End the run and copy the last log entries, but do not stop the query."""
        self._watcher.stop()
        try:
            self._ledger.end_run(
                self._run.id,
                end,
                failure.reason if failure else reason,
                failure=failure.kind if failure else None,
                failure_code=failure.code if failure else None,
            )
        except SlackwaterError as error:
            # The next run finds this one without an end and closes it.
            log.warning("a run's end was not recorded", stream=self._generation.stream, end=end, error=str(error))


class StreamOutcome(NamedTuple):
    """``reason``: why it failed or did not start. ``error``: raised before its query started."""

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
            context = write_context(self._services.ledger, self.stream, self._epoch, ready.planned, self._built)
            # Before the first write: a driver that was paused, also while it waited for a restart, may have lost it.
            context.check_lease()
            claim_output(self._services.home, self.stream)
            self._built.definition.sink.check(self._built.frame, context)
            # Nothing refuses the start from here on; and the query, which may change state, is not started yet.
            record_start(self._services.home, self._services.ledger, self.stream)
            record_program(self._services.home, self._services.ledger, self._generation, self._built)
            # In real-time mode Spark writes ``offsets/N`` when batch N has ended: no planned batch is to be completed.
            completes = ready.completed_batch is not None and self._trigger.in_micro_batches
            # The completed batch may advance the watermark: the start after it plans the batch without data.
            if completes:
                self._services.say(
                    f"{self.stream.full_name}: the sink has batch {ready.completed_batch}, which is not committed: it "
                    "is completed first, without being written again"
                )
                self._once_more = True
            else:
                planned, message = self._no_data.plan()
                if message:
                    self._services.say(f"{self.stream.full_name}: {message}")
                # A query that runs one batch would run this one and leave the data that is there.
                self._once_more = planned and self._trigger.kind == "once"
            self._active = QueryRun(
                self._services,
                self._generation,
                self._built,
                ready.copier,
                trigger=self._trigger,
                context=context,
                completes_batch=completes,
            )
        except SlackwaterError as error:
            failure = classify(error)
            if not self._may_restart(failure):
                raise
            self._wait_for_restart(failure)

    def poll(self, *, drain: bool = False) -> None:
        """Check the query and restart it if needed. Never raises. ``drain``: end after the running batch."""
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

    def _advance(self) -> None:
        if self._active is None:
            if self.outcome is None and time.monotonic() >= self._restarts.due_at:
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
            if (
                self._trigger.kind == "available-now"
                and not self._once_more
                and self._has_timers
                and has_read_all(self._active.query, self._planned_before)
            ):
                self._caught_up = True
                self._request_drain()
        else:
            self._handle_end(self._active)

    @cached_property
    def _has_timers(self) -> bool:
        """Return whether a stateful operator has processing-time timers.

        For them Spark always plans a batch, even without data (``shouldRunAnotherBatch`` of
        ``FlatMapGroupsWithStateExec`` and ``TransformWithStateExec``), and ``available-now`` ends a query only when no
        batch is planned (``MicroBatchExecution.constructNextBatch``). Such a query is caught up when its sources are at
        the positions fixed at its start: later batches start and end there.
        """
        for node in nodes_of(analysed_plan(self._built.frame)):
            name = class_name(node)
            if name.startswith("FlatMapGroups") and name.endswith("WithState"):
                if str(node.timeout()) == _ON_PROCESSING_TIME:
                    return True
            elif name.startswith("TransformWithState") and str(node.timeMode()).startswith(_IN_PROCESSING_TIME):
                return True
        return False

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
        elif error is None:
            self._conclude("finished")
        elif self._may_restart(failure := classify(error)):
            self._active = None
            run.end("failed", failure)
            self._wait_for_restart(failure)
        else:
            self._conclude("failed", failure)

    def _may_restart(self, failure: RunFailure) -> bool:
        if failure.kind == "permanent":
            return False
        # Without the store no progress is shown: the restart counts, and the limit of restarts ends the stream.
        with suppress(OSError):
            committed = read_logs(open_read_store(self._generation.location)).committed
            if committed > self._committed_before:
                # These batches count once, also where the next start fails before it has read the checkpoint.
                self._committed_before = committed
                self._restarts.in_a_row = 0
        return self._restarts.in_a_row < self._restarts.most

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
    return failure._replace(reason=f"Spark no longer answers: {failure.reason}", traceback=None)


FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 60.0
_DOUBLINGS = 6
"""The number of doublings after which the wait is longest."""


class Restarts:
    """Allows at most ``most`` in a row; a committed batch resets the count."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.in_a_row = self.total = 0
        self.due_at = 0.0

    def plan_next(self) -> str:
        wait_s = min(FIRST_WAIT_S * 2 ** min(self.in_a_row, _DOUBLINGS), LONGEST_WAIT_S)
        self.total += 1
        self.in_a_row += 1
        self.due_at = time.monotonic() + wait_s
        return f"restart {self.in_a_row} of {self.most} in {wait_s:.0f} s"


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
