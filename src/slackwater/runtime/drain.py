"""Stops a query between two batches.

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

import signal
import threading
import time
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

import structlog
from py4j.protocol import Py4JError

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery


STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
BREAK_OFF_AT = 3


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

log = structlog.get_logger(__name__)


class Drain:
    """Drains a query: call ``start`` once, then ``finished`` until it is true."""

    def __init__(self, query: StreamingQuery) -> None:
        self._query = query
        self._loop: _Loop | None = None
        self._ending = False
        self._idle = 0

    def start(self) -> None:
        """Let no batch start after the running batch."""
        try:
            self._loop = _Loop(self._query._jsq.streamingQuery())
            self._ending = self._loop.end()
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
        if not self._ending:
            self._ending = self._loop.end()
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
        if not lock.tryLock(LOCK_WAIT_MS, _milliseconds(self._loader)):
            return False
        try:
            return self._wait_for_a_safe_phase(lock) and self._set_and_check()
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

    def _set_and_check(self) -> bool:
        self._state.set(self._ended)
        time.sleep(SLIPPED_S)
        if self._phase() != "constructing":
            return True
        # Its check came before the state was set; it now waits for the lock to start a batch that would be interrupted.
        self._state.set(self._active)
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


def _milliseconds(loader: Any) -> Any:
    return loader.loadClass("java.util.concurrent.TimeUnit").getField("MILLISECONDS").get(None)
