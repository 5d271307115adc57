"""One stream's life in one Spark application: started, watched, started again after a failure, ended."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import structlog

from slackwater.checkpoint.logs import marks as read_marks
from slackwater.checkpoint.logs import read_logs
from slackwater.checkpoint.state.stores import state_stores
from slackwater.errors import NotFound, SlackwaterError, StreamFailed
from slackwater.home.home import Home, StreamFile
from slackwater.ledger.ledger import Ledger
from slackwater.model.marks import Marks
from slackwater.model.profile import QueryProfile
from slackwater.model.records import GenerationRecord, RunRecord, StreamRecord
from slackwater.model.trigger import Trigger
from slackwater.recording.log_copier import LogCopier
from slackwater.recording.watcher import Watcher
from slackwater.runtime import failures
from slackwater.runtime.drain import Drain
from slackwater.runtime.guard import BeforeStart, check_before_start, check_same_sink
from slackwater.runtime.listener import ProgressRecorder, Recorded
from slackwater.runtime.pipeline import StreamDefinition
from slackwater.runtime.profile import profile_of
from slackwater.runtime.query import BuiltStream, start
from slackwater.sinks.registry import open_output
from slackwater.storage.open import is_uri, open_read_store
from slackwater.storage.protocols import ReadStore

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

STORES_EVERY_S = 1.0
BACKOFF_FIRST_S = 1.0
BACKOFF_MOST_S = 60.0

log = structlog.get_logger(__name__)

End = Literal["finished", "stopped", "interrupted", "failed", "not-started"]


@dataclass(frozen=True, slots=True)
class StreamOutcome:
    """How a stream's part in a run ended. ``reason`` says why it failed or was not started."""

    stream: str
    end: End
    reason: str | None = None
    restarts: int = 0


@dataclass(frozen=True, slots=True)
class RunServices:
    """What every stream of a run shares. ``restarts_most`` counts restarts between which no batch was committed."""

    home: Home
    ledger: Ledger
    recorder: ProgressRecorder
    spark_version: str
    restarts_most: int
    say: Callable[[str], None]


def register(definition: StreamDefinition, reference: str, home: Home, ledger: Ledger) -> StreamRecord:
    """Make the stream and its first generation known; the caller holds its lease.

    Raises Refused where its sink is another than the one it has run with.
    """
    record = StreamRecord(
        definition.pipeline, definition.name, definition.sink.identity(), definition.output_mode, reference
    )
    try:
        known = ledger.find_stream(record.full_name)
    except NotFound:
        location = definition.checkpoint or str(home.checkpoint(record.pipeline, record.name, 1))
        ledger.register_stream(record)
        ledger.add_generation(GenerationRecord(record.full_name, 1, _absolute(location)))
    else:
        if ledger.entries(record.full_name, "offsets"):
            check_same_sink(known, record)
        record = replace(record, current_generation=known.current_generation)
        ledger.register_stream(record)
    _write_identity(home, record)
    return record


def _write_identity(home: Home, record: StreamRecord) -> None:
    known = home.read_stream_file(record.pipeline, record.name)
    if known is None or dict(known.sink) != dict(record.sink):
        identifier = known.id if known else str(uuid.uuid4())
        identity = StreamFile(identifier, record.current_generation, record.sink)
        home.write_stream_file(record.pipeline, record.name, identity)


def check(ledger: Ledger, stream: StreamRecord) -> tuple[LogCopier, Marks]:
    """Fill in what the ledger missed, then refuse what would lose or double rows. No Spark is needed for it.

    Raises Refused, SinkUnreadable, or StreamFailed where a store does not answer.
    """
    generation = ledger.generation(stream.full_name, stream.current_generation)
    try:
        checkpoint, output = open_read_store(generation.location), open_output(stream.sink)
        copier = LogCopier(ledger, stream.full_name, generation.number, checkpoint, output)
        copier.copy()
        marks = replace(read_marks(checkpoint), written=output.last_written())
    except OSError as error:
        raise StreamFailed(
            "store-unreadable",
            f"The checkpoint or the output of stream {stream.name} cannot be read: {error}",
            where=generation.location,
        ) from error
    if marks.written is not None:
        # Seen only now, before the query starts: a batch that is written and not committed will be skipped by the sink.
        ledger.record_sink_mark(stream.full_name, marks.written, marks.committed)
    recorded = max(ledger.entries(stream.full_name, "offsets"), default=-1)
    check_before_start(BeforeStart(stream, marks, recorded, ledger.open_operation(stream.full_name)))
    return copier, marks


def _absolute(location: str) -> str:
    return location if is_uri(location) else str(Path(location).absolute())


class StreamRun:
    """Runs one stream. ``poll`` is called over and over; it never waits long, and it never raises."""

    def __init__(self, services: RunServices, stream: StreamRecord, built: BuiltStream, trigger: Trigger) -> None:
        self.stream = stream
        self.outcome: StreamOutcome | None = None
        self._services = services
        self._built = built
        self._trigger = trigger
        self._generation = services.ledger.generation(stream.full_name, stream.current_generation)
        self._checkpoint: ReadStore = open_read_store(self._generation.location)
        self._query: StreamingQuery | None = None
        self._watcher: Watcher | None = None
        self._run: RunRecord | None = None
        self._drain: Drain | None = None
        self._committed_before = -1
        self._restarts = 0
        self._restarts_in_a_row = 0
        self._start_at = 0.0
        self._profile: QueryProfile | None = None
        self._stores_at = 0.0
        self._ledger_is_away = False

    @property
    def state(self) -> str:
        """What the stream does now, in one word: running, draining, waiting (for its next try), or how it ended."""
        if self.outcome is not None:
            return self.outcome.end
        if self._query is None:
            return "waiting"
        return "running" if self._drain is None else "draining"

    def start(self) -> None:
        """Check, then start the query. Raises SlackwaterError, and then nothing goes on.

        A failure that may pass is none yet: the stream starts again after a while, in ``poll``.
        """
        try:
            self._start()
        except SlackwaterError as error:
            if not self._may_try_again(error):
                raise
            self._back_off(_told(error))

    def poll(self, *, drain: bool = False) -> None:
        """Notice an end, a failure, a drain that is through, or a restart that is due; begin to drain if asked to."""
        if self.outcome is not None:
            return
        try:
            if drain:
                self._begin_drain()
            self._look()
        except SlackwaterError as error:
            self._fail(_told(error))
        except spark_errors() as error:
            self._fail(f"Spark no longer answers: {failures.reason_of(error)}")

    def stop_at_once(self, reason: str | None = None) -> None:
        """Interrupt the running batch; it is run again at the next start."""
        if self.outcome is not None:
            return
        try:
            if self._query is not None:
                self._query.stop()
        except spark_errors() as error:
            self._fail(f"Spark no longer answers: {failures.reason_of(error)}")
            return
        self._end("interrupted", reason)

    def stop_requested(self) -> bool:
        """Whether ``slackwater stop`` asked for this run's end."""
        if self._run is None:
            return False
        try:
            asked = self._services.ledger.stop_requested(self._run.id)
        except SlackwaterError as error:
            if not self._ledger_is_away:
                log.warning("the ledger was not asked for a stop", stream=self.stream.full_name, error=str(error))
            self._ledger_is_away = True
            return False
        self._ledger_is_away = False
        return asked

    def _start(self) -> None:
        copier, marks = check(self._services.ledger, self.stream)
        self._committed_before = marks.committed
        self._begin(Watcher(copier))

    def _begin(self, watcher: Watcher) -> None:
        services, stream, number = self._services, self.stream, self._generation.number
        services.recorder.follow(stream.full_name, Recorded(stream.full_name, number))
        self._run = services.ledger.begin_run(stream.full_name, number, services.spark_version)
        self._watcher = watcher
        watcher.start()
        try:
            self._query = start(self._built, self._generation.location, self._trigger)
        except BaseException as error:
            self._close("failed", _told(error) if isinstance(error, SlackwaterError) else "the query did not start")
            raise
        self._describe(str(self._query.id))

    def _describe(self, query_id: str) -> None:
        """Record what the query is; it runs already, and goes on where that does not succeed."""
        name, number = self.stream.full_name, self._generation.number
        unreadable: tuple[type[Exception], ...] = (SlackwaterError, LookupError, ValueError, TypeError, *spark_errors())
        try:
            self._profile = profile_of(self._built.frame)
            self._services.ledger.update_generation(name, number, query_id=query_id, layout=self._profile.as_json())
        except unreadable as error:
            log.warning("the query's plan was not recorded", stream=name, error=str(error))

    def _record_stores(self) -> None:
        """Once its first batch has made them, record which state stores this generation has."""
        if self._profile is None or time.monotonic() < self._stores_at:
            return
        self._stores_at = time.monotonic() + STORES_EVERY_S
        try:
            if self._profile.stateful and read_logs(self._checkpoint).committed < 0:
                return
            layout = {**self._profile.as_json(), "state_stores": state_stores(self._checkpoint)}
            self._services.ledger.update_generation(self.stream.full_name, self._generation.number, layout=layout)
            self._stores_at = math.inf
        except (SlackwaterError, OSError) as error:
            log.warning("the state stores were not recorded", stream=self.stream.full_name, error=str(error))

    def _look(self) -> None:
        if self._query is None:
            if time.monotonic() >= self._start_at:
                self.start()
        elif self._drain is not None:
            if self._drain.finished():
                error = self._query.exception()
                self._end("failed" if error else "stopped", failures.reason_of(error) if error else None)
        elif not self._query.isActive:
            self._ended_by_itself(self._query)
        else:
            self._record_stores()

    def _begin_drain(self) -> None:
        if self._query is None:
            # It waits for its next try: there is no batch to wait for.
            self._finish("stopped", None)
        elif self._drain is None:
            self._drain = Drain(self._query)
            self._drain.begin()

    def _ended_by_itself(self, query: StreamingQuery) -> None:
        error = query.exception()
        if error is None:
            self._end("finished", None)
        elif self._may_try_again(error):
            self._close("failed", failures.reason_of(error))
            self._back_off(failures.reason_of(error))
        else:
            self._fail(failures.reason_of(error))

    def _may_try_again(self, error: BaseException) -> bool:
        if not failures.is_transient(error):
            return False
        if self._has_moved_on():
            self._restarts_in_a_row = 0
        return self._restarts_in_a_row < self._services.restarts_most

    def _has_moved_on(self) -> bool:
        """Whether a batch was committed since the last start: a stream that gets on is not stuck."""
        try:
            return read_logs(self._checkpoint).committed > self._committed_before
        except OSError:
            return False

    def _back_off(self, reason: str) -> None:
        wait_s = min(BACKOFF_FIRST_S * 2**self._restarts_in_a_row, BACKOFF_MOST_S)
        self._restarts += 1
        self._restarts_in_a_row += 1
        self._start_at = time.monotonic() + wait_s
        self._services.say(
            f"{self.stream.full_name}: {reason}; "
            f"restart {self._restarts_in_a_row} of {self._services.restarts_most} in {wait_s:.0f} s"
        )

    def _fail(self, reason: str) -> None:
        self._end("failed", reason)

    def _end(self, end: End, reason: str | None) -> None:
        self._close(end, reason)
        self._finish(end, reason)

    def _close(self, end: End, reason: str | None) -> None:
        """End this life of the query: the last lines into the ledger, the run's end with its reason."""
        watcher, run = self._watcher, self._run
        self._query = self._watcher = self._run = self._drain = None
        if watcher is not None:
            watcher.stop()
        if run is None:
            return
        try:
            self._services.ledger.end_run(run.id, end, reason)
        except SlackwaterError as error:
            # The next run finds this one without an end and closes it.
            log.warning("a run's end was not recorded", stream=self.stream.full_name, end=end, error=str(error))

    def _finish(self, end: End, reason: str | None) -> None:
        self.outcome = StreamOutcome(self.stream.full_name, end, reason, self._restarts)


def spark_errors() -> tuple[type[Exception], ...]:
    """What a call to Spark raises where Spark refuses it, where its insides have moved, or where its JVM is gone."""
    from py4j.protocol import Py4JError  # noqa: PLC0415 - comes with pyspark
    from pyspark.errors import PySparkException  # noqa: PLC0415

    return Py4JError, PySparkException, OSError


def _told(error: SlackwaterError) -> str:
    return f"{error.code}: {error}"
