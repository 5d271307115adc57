"""Replays planned batches one after another in a single query, with the recorded watermark of each input.

A query per batch costs a start, an end, and loading all state. So the query gets an endless interval, and its thread
waits in ``waitTillTime`` of the trigger's clock, which is ours. There Spark's ``populateStartOffsets`` reads the next
batch from the checkpoint as at a start. Sources are not asked for new data. The clock is a private field, and Spark's
steps between batches are known for versions in ``KNOWN``; otherwise each batch gets a query.

Spark keeps the watermarks of inputs only in memory (``WatermarkTracker.operatorToWatermarkMap``); a checkpoint has
their minimum or maximum. After a restart an input without new rows counts as never having had any, and under policy
``min`` rows are counted that an uninterrupted run drops as late. So the map is recorded whenever Spark is about to
write ``commits/N``, after its update; and a restarted query gets the recorded map while its thread waits for the lock
to plan its first batch. Both use private fields.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import structlog
from py4j.clientserver import ClientServer
from pyspark import SparkContext
from pyspark.java_gateway import ensure_callback_server_started

from slackwater.checkpoint.logs import read_logs
from slackwater.core.program import QueryProfile
from slackwater.core.records import GenerationRecord, LogLine
from slackwater.core.units import minor_release
from slackwater.ledger.lineage import INPUT_WATERMARKS
from slackwater.runtime.program.logical_plan import WATERMARK, class_name, java_field, nodes_of
from slackwater.runtime.run.failures import SPARK_ERRORS, UNREADABLE
from slackwater.runtime.run.listener import make_listener
from slackwater.runtime.run.query import BuiltStream, start_without_output
from slackwater.storage.open import open_read_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from slackwater.ledger.ledger import Ledger


KNOWN = re.compile(r"4\.[13]\.")
NEVER = "36500 days"
"""The interval of the trigger: only our clock ends it."""
CLOCK_S_MAX = 10.0
"""The longest wait, after the first batch, until the query's thread reaches our clock; later the query is stopped."""
CHECK_S = 0.05
POLL_S = 0.002

log = structlog.get_logger(__name__)


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
        while True:
            if self._clock is None:
                time.sleep(CHECK_S)
            elif self._clock.waiting.wait(CHECK_S):
                return
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
        except UNREADABLE as error:
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
    except UNREADABLE as error:
        log.warning("each batch is replayed by a query of its own", error=str(error))
    return None


def _release(*objects: Any) -> None:
    """Release Java objects: Python collects their cycles late, and the JVM keeps the objects until then."""
    gateway: Any = SparkContext._gateway
    for one in objects:
        gateway.detach(one)


POLICY = "spark.sql.streaming.multipleWatermarkPolicy"
READY_S = 30.0
LEAST_LONG = 1 << 31
"""py4j passes a smaller number as a Java ``Integer``, which the map of ``Long`` values must not hold."""


class InputWatermarks(NamedTuple):
    """Each input's newest event time less its delay, in milliseconds, after a batch; ``None``: no row yet.

    ``combined_ms`` is Spark's written watermark. ``spark_version`` decides the inputs' order.
    """

    combined_ms: int
    inputs_ms: tuple[int | None, ...]
    delays_ms: tuple[int, ...]
    spark_version: str

    def as_text(self) -> str:
        return json.dumps(self._asdict())

    @classmethod
    def parse(cls, text: str) -> InputWatermarks:
        value = json.loads(text)
        return cls(
            int(value["combined_ms"]),
            tuple(None if one is None else int(one) for one in value["inputs_ms"]),
            tuple(int(one) for one in value["delays_ms"]),
            str(value["spark_version"]),
        )


class InputWatermarkKeeper:
    """Keeps a query's input watermarks over restarts. The caller holds the lease."""

    def __init__(
        self,
        ledger: Ledger,
        generation: GenerationRecord,
        profile: QueryProfile | None,
        spark: SparkSession,
        say: Callable[[str], None],
    ) -> None:
        self._ledger = ledger
        self._generation = generation
        self._delays = profile.watermark_delays_ms if profile is not None else ()
        self._spark = spark
        self._say = say
        self._restored: InputWatermarks | None = None

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Restore the watermarks at a start: the query's first batch is planned after the restore."""
        if len(self._delays) <= 1:
            yield
            return
        self._restored = self._recorded()
        listener = make_listener(lambda _: None, self._started)
        self._spark.streams.addListener(listener)
        try:
            yield
        finally:
            self._spark.streams.removeListener(listener)

    def _recorded(self) -> InputWatermarks | None:
        logs = read_logs(open_read_store(self._generation.location))
        batch, entry = logs.committed, logs.newest_offset
        # No batch is committed yet, or none since a reset: there is nothing to continue.
        if batch <= self._generation.floor:
            return None
        lines = self._ledger.lines(self._generation.stream, INPUT_WATERMARKS, batch, batch)
        try:
            found = InputWatermarks.parse(lines[batch]) if batch in lines else None
        except (ValueError, LookupError, TypeError):
            found = None
        commit = logs.newest_commit
        if (
            found is not None
            and found.delays_ms == self._delays
            and minor_release(found.spark_version) == minor_release(self._spark.version)
            # Another combined watermark means that the record is not of the run that has committed this batch.
            and (commit is None or commit.next_batch_watermark_ms == found.combined_ms)
            and all(one is None or one >= LEAST_LONG for one in found.inputs_ms)
        ):
            return found
        pinned = entry.metadata.conf.get(POLICY) if entry is not None and entry.metadata is not None else None
        if (pinned or self._spark.conf.get(POLICY, "min")) != "max":
            self._warn(f"those after batch {batch} are not recorded for this query and Spark {self._spark.version}")
        return None

    def _warn(self, why: str) -> None:
        self._say(
            f"{self._generation.stream}: several watermarks, of which Spark keeps only the combined one over a "
            f"restart; {why}: rows that an uninterrupted run drops as late may be counted, and windows may be written "
            "later"
        )

    def _started(self, query: str, _run: str, _name: str | None) -> None:
        """Called in the query's thread, before it reads its checkpoint.

        A call back into the JVM would run in that thread, which cannot wait for its own lock.
        """
        ready = threading.Event()
        threading.Thread(target=self._hold, args=(query, ready), name="slackwater-watermarks", daemon=True).start()
        ready.wait(READY_S)

    def _hold(self, query_id: str, ready: threading.Event) -> None:
        try:
            if not isinstance(SparkContext._gateway, ClientServer):
                raise TypeError("PYSPARK_PIN_THREAD is off")
            execution = _execution(self._spark, query_id)
            lock = execution.awaitProgressLock()
            lock.lock()
            try:
                tracked = _Tracked(execution)
                commits = execution.commitLog()
                field = java_field(commits, "fileManager")
                inner = field.get(commits)
                interface = next(one for one in _interfaces(inner.getClass()) if one.endswith("CheckpointFileManager"))
                field.set(commits, _recording_manager(inner, interface, lambda batch: self._record(tracked, batch)))
                # Not before the file manager is replaced: the first batch could be committed without a record.
                ready.set()
                if _waits_for(lock, execution):
                    tracked.restore(self._restored)
            finally:
                lock.unlock()
        except UNREADABLE as error:
            log.warning("the watermarks of the inputs are not kept", stream=self._generation.stream, error=str(error))
            self._warn("this Spark does not let them be read or restored")
        finally:
            ready.set()

    def _record(self, tracked: _Tracked, batch: int) -> None:
        """Record the map, just before the commit. Never raises: the query continues."""
        try:
            combined_ms, inputs_ms = tracked.values()
            text = InputWatermarks(combined_ms, inputs_ms, self._delays, str(self._spark.version)).as_text()
            name, number = self._generation.stream, self._generation.number
            self._ledger.record_lines([LogLine(name, number, INPUT_WATERMARKS, batch, text)])
        except UNREADABLE as error:
            # The next start says that they are not recorded.
            log.warning("the watermarks of a batch were not recorded", batch=batch, error=str(error))


class _Tracked:
    """A query's ``WatermarkTracker``, whose map has inputs by number (3.5) or plan node id."""

    def __init__(self, execution: Any) -> None:
        if class_name(execution) != "MicroBatchExecution":
            raise TypeError(f"a query of the kind {class_name(execution)}")
        self._execution = execution

    def values(self) -> tuple[int, tuple[int | None, ...]]:
        """The values in plan order; Spark 3.5 has 0 for an input without rows."""
        found = self._map()
        return int(self._execution.watermarkTracker().currentWatermark()), tuple(
            _value(found.get(key)) or None for key in self._keys(found)
        )

    def restore(self, recorded: InputWatermarks | None) -> None:
        if recorded is None:
            return
        found = self._map()
        keys = self._keys(found, len(recorded.inputs_ms))
        if len(keys) != len(recorded.inputs_ms):
            raise ValueError(f"{len(keys)} watermarks, of which {len(recorded.inputs_ms)} are recorded")
        optional = not isinstance(keys[0], int)
        option = SparkContext._jvm.scala.Option  # type: ignore[union-attr] # py4j: a JVM is there once a query is
        for key, value_ms in zip(keys, recorded.inputs_ms, strict=True):
            if value_ms is not None:
                found.put(key, option.apply(value_ms) if optional else value_ms)

    def _map(self) -> Any:
        tracker = self._execution.watermarkTracker()
        return java_field(tracker, "operatorToWatermarkMap").get(tracker)

    def _keys(self, found: Any, count: int = 0) -> Sequence[Any]:
        nodes = [node for node in nodes_of(self._execution.logicalPlan()) if class_name(node) == WATERMARK]
        if not any(str(field.getName()) == "nodeId" for node in nodes for field in node.getClass().getDeclaredFields()):
            return range(count or found.size())
        keys = [node.nodeId() for node in nodes]
        if not all(found.contains(key) for key in keys):
            raise ValueError("the map does not have the watermarks of the plan")
        return keys


def _execution(spark: SparkSession, query_id: str) -> Any:
    jvm: Any = SparkContext._jvm
    return spark._jsparkSession.streams().get(jvm.java.util.UUID.fromString(query_id)).streamingQuery()


def _waits_for(lock: Any, execution: Any) -> bool:
    """Wait until the query's thread, having read its checkpoint, wants the lock; ``False`` if it ended before."""
    thread = execution.queryExecutionThread()
    while thread.isAlive():
        if lock.hasQueuedThread(thread):
            return True
        time.sleep(POLL_S)
    return False


def _recording_manager(inner: Any, interface: str, record: Callable[[int], None]) -> Any:
    class RecordingFileManager:
        """Wraps Spark's ``CheckpointFileManager``; passes through all methods except the observed ``createAtomic``."""

        def createAtomic(self, path: Any, overwrite: bool) -> Any:
            name = str(path.getName())
            if name.isdecimal():
                record(int(name))
            return inner.createAtomic(path, overwrite)

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            return getattr(inner, name)

        class Java:
            implements = (interface,)

    return RecordingFileManager()


def _interfaces(java_class: Any) -> Iterator[str]:
    while java_class is not None:
        for one in java_class.getInterfaces():
            yield str(one.getName())
            yield from _interfaces(one)
        java_class = java_class.getSuperclass()


def _value(found: Any) -> int | None:
    """Unwrap an ``Option``; since Spark 4 it is nested in a second ``Option``."""
    while found is not None and not isinstance(found, int):
        found = found.get() if found.isDefined() else None
    return found
