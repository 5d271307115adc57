"""Records the watermark of each input with every batch, and restores it before the first.

Spark keeps them only in memory (``WatermarkTracker.operatorToWatermarkMap``); a checkpoint has their minimum or
maximum. After a restart an input without new rows counts as never having had any, and under policy ``min`` rows are
counted that an uninterrupted run drops as late. So the map is recorded whenever Spark is about to write ``commits/N``,
after its update; and a restarted query gets the recorded map while its thread waits for the lock to plan its first
batch. Both use private fields.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import structlog
from py4j.clientserver import ClientServer
from pyspark import SparkContext

from slackwater.checkpoint.logs import read_logs
from slackwater.core.errors import SlackwaterError
from slackwater.core.profile import QueryProfile
from slackwater.core.records import GenerationRecord, LogLine
from slackwater.ledger.lineage import INPUT_WATERMARKS
from slackwater.runtime.failures import SPARK_ERRORS
from slackwater.runtime.listener import QueryLife, make_listener
from slackwater.runtime.logical_plan import WATERMARK, class_name, java_field, nodes_of
from slackwater.storage.open import open_read_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from slackwater.ledger.ledger import Ledger


POLICY = "spark.sql.streaming.multipleWatermarkPolicy"
READY_S = 30.0
POLL_S = 0.002
LEAST_LONG = 1 << 31
"""py4j passes a smaller number as a Java ``Integer``, which the map of ``Long`` values must not hold."""

log = structlog.get_logger(__name__)

_FAILURES: tuple[type[Exception], ...] = (
    SlackwaterError, LookupError, ValueError, TypeError, AttributeError, *SPARK_ERRORS,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class InputWatermarks:
    """Each input's newest event time less its delay, in milliseconds, after a batch; ``None``: no row yet.

    ``combined_ms`` is Spark's written watermark. ``spark_version`` decides the inputs' order.
    """

    combined_ms: int
    inputs_ms: tuple[int | None, ...]
    delays_ms: tuple[int, ...]
    spark_version: str

    def as_text(self) -> str:
        return json.dumps(
            {
                "combined_ms": self.combined_ms,
                "inputs_ms": self.inputs_ms,
                "delays_ms": self.delays_ms,
                "spark_version": self.spark_version,
            }
        )

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
            and _minor(found.spark_version) == _minor(self._spark.version)
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

    def _started(self, life: QueryLife) -> None:
        """Called in the query's thread, before it reads its checkpoint.

        A call back into the JVM would run in that thread, which cannot wait for its own lock.
        """
        ready = threading.Event()
        threading.Thread(target=self._hold, args=(life.id, ready), name="slackwater-watermarks", daemon=True).start()
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
                _before_commits(execution, lambda batch: self._record(tracked, batch))
                # Not before the file manager is replaced: the first batch could be committed without a record.
                ready.set()
                if _waits_for(lock, execution):
                    tracked.restore(self._restored)
            finally:
                lock.unlock()
        except _FAILURES as error:
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
        except _FAILURES as error:
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


def _before_commits(execution: Any, record: Callable[[int], None]) -> None:
    commits = execution.commitLog()
    field = java_field(commits, "fileManager")
    inner = field.get(commits)
    interface = next(one for one in _interfaces(inner.getClass()) if one.endswith("CheckpointFileManager"))
    field.set(commits, _recording_manager(inner, interface, record))


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


def _minor(version: str) -> list[str]:
    return str(version).split(".")[:2]
