"""Plans the pending no-data batch if a running query would have run it next.

After a batch that advanced the watermark, a running query prefers a batch with data; only without data it runs a
no-data batch. Their late rows differ: a batch with data still counts rows under the previous watermark.

The sources answer whether there is data: each is created as at a start, with a copy of its own log, and asked for its
latest offset with its default read limit (``MicroBatchExecution.constructNextBatch``).
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import structlog
from py4j.java_gateway import JavaClass

from slackwater.checkpoint.layout import offset_path
from slackwater.checkpoint.logs import CheckpointLogs, read_logs
from slackwater.checkpoint.no_data_batch import NO_DATA_BATCHES, no_data_entry
from slackwater.checkpoint.writer import write_log
from slackwater.core.checkpoint import OffsetEntry
from slackwater.core.errors import SlackwaterError
from slackwater.core.records import GenerationRecord, LogLine
from slackwater.core.trigger import Trigger
from slackwater.formats.offset_log import render_offset_entry
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.lineage import CAUGHT_UP
from slackwater.runtime.available_now import reached_end
from slackwater.runtime.failures import SPARK_ERRORS, reason_of
from slackwater.runtime.logical_plan import analysed_plan, class_name, source_logs, streaming_sources
from slackwater.runtime.query import BuiltStream
from slackwater.sources import kind_described
from slackwater.storage.open import open_write_store
from slackwater.storage.protocols import ReadStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Pending:
    newest: OffsetEntry
    entry: OffsetEntry
    batch: int

    @property
    def text(self) -> str:
        return render_offset_entry(self.newest).decode("utf-8", "surrogateescape")


class NoDataBatch:
    """A generation's pending no-data batch. The caller holds the lease, and no query runs."""

    def __init__(self, generation: GenerationRecord, output_mode: str, built: BuiltStream, ledger: Ledger) -> None:
        self._generation = generation
        self._output_mode = output_mode
        self._built = built
        self._ledger = ledger
        self._store = open_write_store(generation.location)

    def plan(self) -> tuple[bool, str]:
        """Plan the batch if a running query would run it next; returns whether it did, and a message.

        Unread data that may have arrived before the stop is read first: a batch without data could drop it as late.
        """
        pending = self._pending(read_logs(self._store))
        if pending is None:
            return False, ""
        batch, newest = pending.batch, pending.batch - 1
        caught_up = was_caught_up(self._ledger, self._generation, newest, pending.text)
        reached = "end" if caught_up else reached_end(self._ledger, self._generation, newest, pending.newest)
        backlog = "none" if reached == "end" else backlog_of(self._built.frame, self._store, pending.newest)
        if backlog == "none":
            write_log(self._store, offset_path(batch), render_offset_entry(pending.entry))
            return (
                True,
                f"batch {batch}, without data, is planned first: it writes what the newest watermark has closed",
            )
        if backlog == "unread":
            arrived = (
                f"batch {batch} reads data that a source already has: rows that arrived while the stream was stopped "
                "are counted even where an uninterrupted run would have dropped them as late"
            )
            # Of a run that was killed before its end, there was data at the time.
            return False, "" if reached == "before" else arrived
        return False, (
            "it is unknown whether a source has unread data: what the newest watermark has closed is written with the "
            "next data"
        )

    def record_caught_up(self, trigger: Trigger) -> None:
        """A query waiting between batches may have found data at the end of its wait. Never raises."""
        if trigger.waits or not trigger.in_micro_batches:
            return
        unrecorded: tuple[type[Exception], ...] = (SlackwaterError, *SPARK_ERRORS)
        try:
            pending = self._pending(read_logs(self._store))
            if pending is not None and backlog_of(self._built.frame, self._store, pending.newest) == "none":
                name, number = self._generation.stream, self._generation.number
                self._ledger.record_lines([LogLine(name, number, CAUGHT_UP, pending.batch - 1, pending.text)])
        except unrecorded as error:
            log.warning("unread data was not looked for", stream=self._generation.stream, error=str(error))

    def _pending(self, logs: CheckpointLogs) -> _Pending | None:
        enabled = self._built.frame.sparkSession.conf.get(NO_DATA_BATCHES, "true") != "false"
        now_ms = self._ledger.now_ms()
        entry = no_data_entry(logs, self._built.profile, self._output_mode, enabled=enabled, now_ms=now_ms)
        if entry is None or logs.newest_offset is None:
            return None
        return _Pending(logs.newest_offset, entry, logs.planned + 1)


def was_caught_up(ledger: Ledger, generation: GenerationRecord, batch: int, entry: str) -> bool:
    lines = ledger.lines(generation.stream, CAUGHT_UP, batch, batch, generation=generation.number)
    return lines.get(batch) == entry


Backlog = Literal["none", "unread", "unknown"]
SOURCES = "sources"
SUPPORTS_LIMITS = "org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl"


def backlog_of(frame: DataFrame, checkpoint: ReadStore, entry: OffsetEntry) -> Backlog:
    """The sources' backlog. ``unknown``: a source cannot be asked, and no other has data."""
    found: Backlog = "none"
    plan = analysed_plan(frame)
    for relation, log_number, offset in zip(streaming_sources(plan), source_logs(plan), entry.offsets, strict=False):
        source = log_number if offset.source.isdecimal() else offset.source
        try:
            if _has_unread(frame, relation, checkpoint, source, offset.text):
                return "unread"
        except SPARK_ERRORS as error:
            log.warning("cannot determine whether a source has unread data", reason=reason_of(error))
            found = "unknown"
        except _NotAsked:
            found = "unknown"
    return found


class _NotAsked(Exception):
    """The source cannot be asked without taking rows from it."""


def _has_unread(frame: DataFrame, relation: Any, checkpoint: ReadStore, source: str, read: str | None) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        _copy(checkpoint, f"{SOURCES}/{source}", Path(folder))
        latest = _latest(frame.sparkSession.sparkContext._jvm, relation, f"file://{folder}", read)
    # As Spark compares offsets: by their JSON.
    return latest is not None and (read is None or json.loads(latest) != json.loads(read))


def _copy(store: ReadStore, path: str, into: Path) -> None:
    """Copy the source's log: the source reads and writes it."""
    for folder in store.folders(path):
        below = into / folder.path.removeprefix(path).lstrip("/")
        below.mkdir(parents=True, exist_ok=True)
        for name in folder.files:
            if not name.startswith("."):
                (below / name).write_bytes(store.read(f"{folder.path}/{name}"))


def _latest(jvm: Any, relation: Any, log_path: str, read: str | None) -> str | None:
    if not kind_described(str(relation.sourceName())).may_be_asked:
        raise _NotAsked
    if class_name(relation) == "StreamingRelation":
        return _latest_of_source(jvm, relation.dataSource(), log_path, read)
    table = relation.table()
    # Spark runs such a source as version 1, too (``MicroBatchExecution.logicalPlan``).
    if not table.capabilities().contains(jvm.org.apache.spark.sql.connector.catalog.TableCapability.MICRO_BATCH_READ):
        return _latest_of_source(jvm, relation.v1Relation().get().dataSource(), log_path, read)
    stream = table.newScanBuilder(relation.extraOptions()).build().toMicroBatchStream(log_path)
    try:
        if not _is_a(jvm, stream, SUPPORTS_LIMITS):
            return _json(stream.latestOffset())
        start = stream.initialOffset() if read is None else stream.deserializeOffset(read)
        return _json(stream.latestOffset(start, stream.getDefaultReadLimit()))
    finally:
        stream.stop()


def _latest_of_source(jvm: Any, data_source: Any, log_path: str, read: str | None) -> str | None:
    source = data_source.createSource(log_path)
    try:
        if not _is_a(jvm, source, SUPPORTS_LIMITS):
            offset = source.getOffset()
            return _json(offset.get()) if offset.isDefined() else None
        start = None if read is None else _serialized(jvm, read)
        return _json(source.latestOffset(start, source.getDefaultReadLimit()))
    finally:
        source.stop()


def _json(offset: Any) -> str | None:
    return None if offset is None else str(offset.json())


def _serialized(jvm: Any, offset: str) -> Any:
    streaming = jvm.org.apache.spark.sql.execution.streaming
    since_4_1 = streaming.runtime.SerializedOffset
    return (since_4_1 if isinstance(since_4_1, JavaClass) else streaming.SerializedOffset)(offset)


def _is_a(jvm: Any, value: Any, interface: str) -> bool:
    return bool(jvm.py4j.reflection.TypeUtil.isInstanceOf(interface, value))
