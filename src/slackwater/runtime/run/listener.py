"""Follows a running query, and stops it between two batches.

Spark's listener bus only queues the progress of a batch; a thread writes it to the ledger, off the batch's path. Errors
are logged and counted, never raised: the next start copies missed data from the checkpoint.

``StreamingQuery.stop()`` interrupts the running batch. But the query's loop checks its state after every batch
(``MicroBatchExecution.executeOneBatch``, Spark 3.5 to 4.3): once the state is changed, the batch is committed and no
other starts.

Since Spark 4.0 a batch also checks between planning and writing, and breaks off. So the state may be set only while a
batch is written, or between batches. The query's progress lock is held meanwhile: it prevents the start and the commit
of a batch.

The first Ctrl-C or SIGTERM asks for a drain, the second for a stop at once. A third interrupts a stop that hangs on an
uninterruptible batch.
"""

from __future__ import annotations

import json
import queue
import signal
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import structlog
from py4j.protocol import Py4JError
from pyspark.sql.streaming import StreamingQueryListener

from slackwater.core.records import BatchRecord, BatchSource
from slackwater.runtime.program.logical_plan import active_jvm

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

    from slackwater.ledger.ledger import Ledger
    from slackwater.runtime.run.runner import RunDisplay

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
BREAK_OFF_AT = 3

log = structlog.get_logger(__name__)


class RecordedQuery(NamedTuple):
    stream: str
    generation: int
    run: int | None = None


class ProgressRecorder:
    """Records JSON progress events as batches, and reports them, and triggers without new data, to a display."""

    def __init__(self, ledger: Ledger, display: RunDisplay | None = None) -> None:
        self._ledger = ledger
        self._display = display
        self._queries: dict[str, RecordedQuery] = {}
        self._names: dict[str, str] = {}
        self._events: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="slackwater-progress", daemon=True)
        self.errors = 0
        self._thread.start()

    def follow(self, query: str, recorded: RecordedQuery) -> None:
        self._queries[query] = recorded

    def name_as(self, query: str, stream: str) -> None:
        self._names[query] = stream

    def put(self, progress: str) -> None:
        self._events.put(partial(self._record, progress))

    def afterwards(self, do: Callable[[], None]) -> None:
        """Call ``do`` in the recorder's thread after all earlier events."""
        self._events.put(do)

    def close(self) -> None:
        self._events.put(None)
        # A database that does not answer must not keep the process: the next start copies what is missing.
        self._thread.join(timeout=10)

    def _write(self) -> None:
        while (event := self._events.get()) is not None:
            try:
                event()
            except Exception as error:  # noqa: BLE001 - the outermost edge: whatever it is, the query continues
                self.errors += 1
                log.warning(
                    "progress was not recorded", error=str(error), kind=type(error).__name__, errors=self.errors
                )

    def _record(self, event: str) -> None:
        progress: dict[str, Any] = json.loads(event)
        # By name first: progress of the first batch can arrive before ``start`` has returned the query with its id.
        name = progress.get("name") or ""
        recorded = self._queries.get(self._names.get(name, name)) or self._queries.get(progress["id"])
        # An idle trigger reports too: the id of the batch to come, and no addBatch among its durations.
        if recorded is None:
            return
        if "addBatch" not in progress.get("durationMs", {}):
            if self._display is not None:
                self._display.idle(recorded.stream)
            return
        batch = batch_of(progress, recorded)
        self._ledger.record_batch(batch)
        if self._display is not None:
            self._display.batch(batch)


Started = Callable[[str, str, str | None], None]
"""Called with a query's id, which survives restarts, the id of its run, and its name."""


def make_listener(
    put: Callable[[str], None],
    started: Started | None = None,
    terminated: Callable[[str, str | None], None] | None = None,
) -> StreamingQueryListener:
    """Make a listener that passes on progress as JSON, starts, and ends as run id and error."""

    class LedgerListener(StreamingQueryListener):
        """A listener of PySpark's type; not called, as ``_jlistener`` receives the JVM's events."""

        @property
        def _jlistener(self) -> Any:
            # Kept, as ``removeListener`` has to name the object that ``addListener`` was given.
            if not hasattr(self, "_wrapper"):
                jvm: Any = active_jvm()
                self._wrapper = jvm.PythonStreamingQueryListenerWrapper(_JvmListener(put, started, terminated))
            return self._wrapper

        def onQueryStarted(self, event: Any) -> None: ...

        def onQueryProgress(self, event: Any) -> None: ...

        def onQueryIdle(self, event: Any) -> None: ...

        def onQueryTerminated(self, event: Any) -> None: ...

    return LedgerListener()


class _JvmListener:
    """Takes the JVM's events unchanged.

    PySpark would copy each event field by field over its socket: 80 ms of CPU per batch; the JSON is a single call.
    """

    def __init__(
        self, put: Callable[[str], None], started: Started | None, terminated: Callable[[str, str | None], None] | None
    ) -> None:
        self._put = put
        self._started = started
        self._terminated = terminated

    def onQueryStarted(self, event: Any) -> None:
        if self._started is not None:
            self._started(event.id().toString(), event.runId().toString(), event.name())

    def onQueryProgress(self, event: Any) -> None:
        self._put(event.progress().json())

    def onQueryIdle(self, event: Any) -> None:
        self._put(json.dumps({"id": event.id().toString()}))

    def onQueryTerminated(self, event: Any) -> None:
        if self._terminated is not None:
            error = event.exception()
            self._terminated(event.runId().toString(), str(error.get()) if error.isDefined() else None)

    class Java:
        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)


def batch_of(progress: dict[str, Any], recorded: RecordedQuery) -> BatchRecord:
    event_time = progress.get("eventTime", {})
    operators = progress.get("stateOperators", [])
    # -1 is from sinks that do not count their rows (``SinkProgress``).
    output = progress.get("sink", {}).get("numOutputRows", -1)
    return BatchRecord(
        stream=recorded.stream,
        generation=recorded.generation,
        batch_id=progress["batchId"],
        timestamp_ms=_epoch_ms(progress["timestamp"]) or 0,
        input_rows=sum(source["numInputRows"] for source in progress["sources"]),
        sources=tuple(
            BatchSource(
                description=source["description"],
                start=_offset(source.get("startOffset")),
                end=_offset(source.get("endOffset")),
                latest=_offset(source.get("latestOffset")),
                input_rows=source["numInputRows"],
            )
            for source in progress["sources"]
        ),
        watermark_ms=_epoch_ms(event_time.get("watermark")),
        event_time_min_ms=_epoch_ms(event_time.get("min")),
        event_time_max_ms=_epoch_ms(event_time.get("max")),
        late_rows=sum(operator.get("numRowsDroppedByWatermark", 0) for operator in operators),
        state_rows=sum(operator.get("numRowsTotal", 0) for operator in operators),
        state_bytes=sum(operator.get("memoryUsedBytes", 0) for operator in operators),
        output_rows=output if output >= 0 else None,
        durations_ms=progress.get("durationMs", {}),
        run=recorded.run,
    )


def _offset(value: Any) -> str | None:
    if value is None or value == "null":
        return None
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _epoch_ms(timestamp: str | None) -> int | None:
    if timestamp is None:
        return None
    # Spark writes times of progress in UTC.
    return round(datetime.fromisoformat(timestamp).replace(tzinfo=UTC).timestamp() * 1000)


class StopSignals:
    """Counts signals while open, and restores the previous handlers.

    Open it after the Spark session: PySpark sets a handler that cancels all jobs.
    """

    def __init__(self) -> None:
        self.count = 0
        self.last: int | None = None
        self._before: dict[signal.Signals, Any] = {}

    @property
    def at_once(self) -> bool:
        return self.count > 1

    def __enter__(self) -> Self:
        # Python takes signals in its main thread only; a run elsewhere is stopped through the ledger.
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._count) for number in STOP_SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _count(self, number: int, _frame: FrameType | None) -> None:
        self.count, self.last = self.count + 1, number
        if self.count >= BREAK_OFF_AT:
            raise KeyboardInterrupt


IDLE_CHECKS = 3
IDLE_CHECK_S = 0.05
LOCK_WAIT_MS = 200
MOMENT_WAIT_S = 1.0
LOOK_S = 0.002
STEADY_S = 0.02
"""Writing must be observed for this long to count: the check within the batch comes right after planning."""
SLIPPED_S = 0.05
"""The longest time until a loop shows that it made its check just before the state was set."""

Phase = Literal["idle", "constructing", "planning", "writing"]


class Drain:
    """Drains a query: call ``start`` once, then ``finished`` until it is true."""

    def __init__(self, query: StreamingQuery) -> None:
        self._query = query
        self._loop: _Loop | None = None
        self.ending = False
        self._idle = 0

    def start(self) -> None:
        """Let no batch start after the running batch."""
        try:
            self._loop = _Loop(self._query._jsq.streamingQuery())
            self.ending = self._loop.end()
        except (AttributeError, Py4JError) as error:
            # Spark Connect, or a Spark with other internals: stopping at once is still exactly-once.
            log.warning("query cannot be drained, stopping it at once", query=self._query.name, error=str(error))
            self._loop = None
            self._query.stop()

    def finished(self) -> bool:
        """Return whether the query's thread has ended. Stops a query that waits for its trigger."""
        if self._loop is None or not self._loop.alive:
            self._query.stop()
            return True
        if not self.ending:
            self.ending = self._loop.end()
            return False
        # The flag is checked before a trigger is marked active, so the query must be idle for a while to count as idle.
        self._idle = 0 if self._query.status["isTriggerActive"] else self._idle + 1
        if self._idle >= IDLE_CHECKS:
            self._query.stop()
            return True
        time.sleep(IDLE_CHECK_S)
        return False


class _Loop:
    def __init__(self, execution: Any) -> None:
        self._execution = execution
        self._thread = execution.queryExecutionThread()
        self._state = execution.state()
        # Spark 4.1 has moved these classes to another package: it is read from the state that the query has.
        state_class = self._state.get().getClass()
        self._package = state_class.getName().rsplit(".", 1)[0]
        self._loader = state_class.getClassLoader()
        self._ended = self._named_state("TERMINATED")
        self._active = self._named_state("ACTIVE")
        self._asks_within_a_batch = not str(execution.sparkSession().version()).startswith("3.")

    @property
    def alive(self) -> bool:
        return bool(self._thread.isAlive())

    def end(self) -> bool:
        """End the loop after the running batch. Returns ``False`` if the caller must try again."""
        if not self._asks_within_a_batch:
            self._state.set(self._ended)
            return True
        lock = self._execution.awaitProgressLock()
        unit = self._loader.loadClass("java.util.concurrent.TimeUnit").getField("MILLISECONDS").get(None)
        if not lock.tryLock(LOCK_WAIT_MS, unit):
            return False
        try:
            if not self._wait_for_a_safe_phase(lock):
                return False
            self._state.set(self._ended)
            time.sleep(SLIPPED_S)
            if self._phase() != "constructing":
                return True
            # Its check came before the state was set; it now waits for the lock to start a batch that would be
            # interrupted.
            self._state.set(self._active)
            return False
        finally:
            lock.unlock()

    def _wait_for_a_safe_phase(self, lock: Any) -> bool:
        give_up = time.monotonic() + MOMENT_WAIT_S
        writing_since: float | None = None
        while time.monotonic() < give_up:
            phase = self._phase()
            if phase == "idle":
                return True
            if phase != "writing":
                writing_since = None
            elif writing_since is None:
                writing_since = time.monotonic()
            elif time.monotonic() - writing_since >= STEADY_S:
                return True
            if phase == "constructing" and lock.hasQueuedThreads():
                # It waits for the lock to start a batch: let it proceed.
                return False
            time.sleep(LOOK_S)
        return False

    def _phase(self) -> Phase:
        context = self._execution.getLatestExecutionContext()
        if not context.currentStatus().isTriggerActive():
            return "idle"
        if not context.isCurrentBatchConstructed():
            return "constructing"
        return "writing" if context.getDuration("queryPlanning").isDefined() else "planning"

    def _named_state(self, name: str) -> Any:
        return self._loader.loadClass(f"{self._package}.{name}$").getField("MODULE$").get(None)
