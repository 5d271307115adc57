"""Writes every batch's progress to the ledger, off the batch's path.

Spark's listener bus only queues the event; a thread writes. Errors are logged and counted, never raised: the next start
copies missed data from the checkpoint.
"""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import structlog
from pyspark import SparkContext
from pyspark.sql.streaming import StreamingQueryListener

from slackwater.core.records import BatchRecord, BatchSource

if TYPE_CHECKING:
    from slackwater.ledger.ledger import Ledger

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Recorded:
    stream: str
    generation: int
    run: int | None = None


class ProgressRecorder:
    """Records JSON progress events as batches, and displays them."""

    def __init__(self, ledger: Ledger, on_batch: Callable[[BatchRecord], None] | None = None) -> None:
        self._ledger = ledger
        self._on_batch = on_batch
        self._queries: dict[str, Recorded] = {}
        self._names: dict[str, str] = {}
        self._events: queue.SimpleQueue[str | Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="slackwater-progress", daemon=True)
        self.errors = 0
        self._thread.start()

    def follow(self, query: str, recorded: Recorded) -> None:
        self._queries[query] = recorded

    def name_as(self, query: str, stream: str) -> None:
        self._names[query] = stream

    def put(self, progress: str) -> None:
        self._events.put(progress)

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
                if isinstance(event, str):
                    self._record(json.loads(event))
                else:
                    event()
            except Exception as error:  # noqa: BLE001 - the outermost edge: whatever it is, the query continues
                self.errors += 1
                log.warning(
                    "progress was not recorded", error=str(error), kind=type(error).__name__, errors=self.errors
                )

    def _record(self, progress: dict[str, Any]) -> None:
        # By name first: progress of the first batch can arrive before ``start`` has returned the query with its id.
        name = progress.get("name") or ""
        recorded = self._queries.get(self._names.get(name, name)) or self._queries.get(progress["id"])
        # An idle trigger reports too: the id of the batch to come, and no addBatch among its durations.
        if recorded is None or "addBatch" not in progress.get("durationMs", {}):
            return
        batch = batch_of(progress, recorded)
        self._ledger.record_batch(batch)
        if self._on_batch is not None:
            self._on_batch(batch)


@dataclass(frozen=True, slots=True)
class QueryLife:
    """A started or ended query. ``id`` survives restarts, ``run_id`` does not."""

    id: str
    run_id: str
    name: str | None


def make_listener(
    put: Callable[[str], None],
    started: Callable[[QueryLife], None] | None = None,
    terminated: Callable[[str, str | None], None] | None = None,
) -> StreamingQueryListener:
    """Make a listener that passes on progress as JSON, starts as QueryLife, and ends as run id and error."""

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


def active_jvm() -> Any:
    return SparkContext._jvm


class _JvmListener:
    """Takes the JVM's events unchanged.

    PySpark would copy each event field by field over its socket: 80 ms of CPU per batch; the JSON is a single call.
    """

    def __init__(
        self,
        put: Callable[[str], None],
        started: Callable[[QueryLife], None] | None,
        terminated: Callable[[str, str | None], None] | None,
    ) -> None:
        self._put = put
        self._started = started
        self._terminated = terminated

    def onQueryStarted(self, event: Any) -> None:
        if self._started is not None:
            self._started(QueryLife(event.id().toString(), event.runId().toString(), event.name()))

    def onQueryProgress(self, event: Any) -> None:
        self._put(event.progress().json())

    def onQueryIdle(self, event: Any) -> None: ...

    def onQueryTerminated(self, event: Any) -> None:
        if self._terminated is not None:
            error = event.exception()
            self._terminated(event.runId().toString(), str(error.get()) if error.isDefined() else None)

    class Java:
        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)


def batch_of(progress: dict[str, Any], recorded: Recorded) -> BatchRecord:
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
        sources=tuple(_source(source) for source in progress["sources"]),
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


def _source(source: dict[str, Any]) -> BatchSource:
    return BatchSource(
        description=source["description"],
        start=_offset(source.get("startOffset")),
        end=_offset(source.get("endOffset")),
        latest=_offset(source.get("latestOffset")),
        input_rows=source["numInputRows"],
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
