"""Replays planned batches one after another in a single query.

A query per batch costs a start, an end, and loading all state. So the query gets an endless interval, and its thread
waits in ``waitTillTime`` of the trigger's clock, which is ours. There Spark's ``populateStartOffsets`` reads the next
batch from the checkpoint as at a start. Sources are not asked for new data. The clock is a private field, and Spark's
steps between batches are known for versions in ``KNOWN``; otherwise each batch gets a query.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import structlog
from py4j.clientserver import ClientServer
from pyspark import SparkContext
from pyspark.java_gateway import ensure_callback_server_started

from slackwater.runtime.failures import SPARK_ERRORS
from slackwater.runtime.logical_plan import java_field
from slackwater.runtime.query import BuiltStream, start_without_output

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

KNOWN = re.compile(r"4\.[13]\.")
NEVER = "36500 days"
"""The interval of the trigger: only our clock ends it."""
CLOCK_S_MAX = 10.0
"""The longest wait, after the first batch, until the query's thread reaches our clock; later the query is stopped."""
CHECK_S = 0.05
POLL_S = 0.002

log = structlog.get_logger(__name__)

_FAILURES: tuple[type[Exception], ...] = (LookupError, ValueError, TypeError, AttributeError, *SPARK_ERRORS)


class ReplayQuery:
    """A query with a no-op sink that runs the planned batch."""

    def __init__(self, built: BuiltStream, checkpoint: str, *, more: bool) -> None:
        self._of = (built, checkpoint)
        kept = more and KNOWN.match(str(built.frame.sparkSession.version)) is not None
        self.query: StreamingQuery = start_without_output(built, checkpoint, interval=NEVER if kept else None)
        self._ends_itself = not kept
        self._clock = _replace_clock(self.query) if kept else None
        self._first = True

    @property
    def waits(self) -> bool:
        return self._clock is not None and self._clock.waiting.is_set()

    def run_next(self, built: BuiltStream, checkpoint: str) -> bool:
        if self._clock is None or not self.waits or self._of[0] is not built or self._of[1] != checkpoint:
            return False
        self._first = False
        return self._clock.resume()

    def wait(self) -> None:
        if self._ends_itself:
            self.query.awaitTermination()
            return
        stop_at = None
        while not self._reached():
            if not self.query.isActive:
                self.query.awaitTermination()
                return
            if self._first and self.query.lastProgress is not None:
                stop_at = stop_at or time.monotonic() + (0 if self._clock is None else CLOCK_S_MAX)
                if time.monotonic() >= stop_at:
                    # The batch is committed, and the thread waits for Spark's own clock.
                    self._stop()
                    return

    def end(self) -> None:
        """End the query. A running batch ends with the session."""
        try:
            if self.waits:
                self._stop()
            if self._clock is not None:
                self._clock.release()
            _release(self.query._jsq)
        except SPARK_ERRORS as error:
            # A JVM that was killed has nothing left to end.
            log.warning("the query of the replay was not ended", error=str(error))

    def _stop(self) -> None:
        if self._clock is not None:
            # First: ``stop`` interrupts the query's thread, which does not end its wait for an answer from Python.
            self._clock.end()
        self.query.stop()

    def _reached(self) -> bool:
        if self._clock is not None:
            return self._clock.waiting.wait(CHECK_S)
        time.sleep(CHECK_S)
        return False


class _TriggerClock:
    """Spark's ``Clock`` of a trigger; called in the query's thread."""

    def __init__(self, execution: Any) -> None:
        self.waiting = threading.Event()
        self._execution = execution
        self._session = execution.sparkSessionForStream()
        self._called = threading.Event()
        self._answered = threading.Event()
        self._ending = False
        self._answer = False

    def resume(self) -> bool:
        self._answered.clear()
        self._called.set()
        self._answered.wait()
        # The batch may have ended by now, and the thread wait for the next one.
        return self._answer

    def end(self) -> None:
        self._ending = True
        self._called.set()

    def release(self) -> None:
        """Have the JVM release the query: it may keep this object, with its references, for long."""
        _release(self._execution, self._session)

    def getTimeMillis(self) -> int:
        return time.time_ns() // 1_000_000

    def nanoTime(self) -> int:
        return time.time_ns()

    def waitTillTime(self, _target_ms: int) -> int:
        """Wait until there is a batch to run: otherwise Spark would plan a new batch."""
        planned = False
        self.waiting.set()
        while not planned:
            self._called.wait()
            self._called.clear()
            if self._ending:
                # ``stop`` first sets the query's state: if the clock returned before, Spark would plan a batch.
                while self._execution.isActive():
                    time.sleep(POLL_S)
                break
            self._answer = False
            try:
                self._answer = planned = self._plan()
            finally:
                self._answered.set()
        return self.getTimeMillis()

    def _plan(self) -> bool:
        execution, planned = self._execution, False
        try:
            done, executor = execution.getLatestExecutionContext(), execution.triggerExecutor()
            context = done.getNextContext()
            execution.populateStartOffsets(context, self._session)
            if context.isCurrentBatchConstructed():
                executor.setNextBatch(context)
                self.waiting.clear()
                planned = True
            _release(done, context, executor)
        except _FAILURES as error:
            log.warning("the next batch is replayed by a query of its own", error=str(error))
        return planned

    class Java:
        implements = ("org.apache.spark.util.Clock",)


def _replace_clock(query: StreamingQuery) -> _TriggerClock | None:
    """Replace the trigger's clock; returns ``None`` if this Spark version does not allow it.

    The trigger is created before the first batch, which takes far longer than this.
    """
    try:
        gateway: Any = SparkContext._gateway
        # Only a ``ClientServer`` runs the calls of a callback in the thread that called it, here that of the query.
        if not isinstance(gateway, ClientServer):
            raise TypeError("PYSPARK_PIN_THREAD is off")
        start_callbacks: Callable[[Any], None] = ensure_callback_server_started
        start_callbacks(gateway)
        execution = query._jsq.streamingQuery()
        clock = _TriggerClock(execution)
        while query.isActive:
            executor = execution.triggerExecutor()
            if executor is not None:
                java_field(executor, "clock").set(executor, clock)
                _release(executor)
                return clock
            time.sleep(POLL_S)
    except _FAILURES as error:
        log.warning("each batch is replayed by a query of its own", error=str(error))
    return None


def _release(*objects: Any) -> None:
    """Release Java objects: Python collects their cycles late, and the JVM keeps the objects until then."""
    gateway: Any = SparkContext._gateway
    for one in objects:
        gateway.detach(one)
