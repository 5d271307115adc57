"""Plans the pending no-data batch if a running query would have run it next.

After a batch that advanced the watermark, a running query prefers a batch with data; only without data it runs a
no-data batch. Their late rows differ: a batch with data still counts rows under the previous watermark.

The sources answer whether there is data: each is created as at a start, with a copy of its own log, and asked for its
latest offset with its default read limit (``MicroBatchExecution.constructNextBatch``).

A self-ending run reads up to the positions that its sources fixed at its start, then executes the no-data batch. After
a kill the positions show whether the newest batch was the last with data. Spark keeps them in fields of its sources.
Sources that end such a run too early are refused.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import structlog
from py4j.java_gateway import JavaClass
from py4j.protocol import Py4JJavaError

from slackwater.checkpoint.layout import OFFSETS, offset_path
from slackwater.checkpoint.logs import NO_DATA_BATCHES, CheckpointLogs, no_data_entry, read_logs
from slackwater.checkpoint.writer import write_log
from slackwater.core.checkpoint import OffsetEntry
from slackwater.core.errors import FormatError, Refused
from slackwater.core.program import Trigger
from slackwater.core.records import GenerationRecord, LogLine
from slackwater.formats.text_log import parse_offset_entry, render_offset_entry
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.lineage import AVAILABLE_NOW, CAUGHT_UP, SOURCES
from slackwater.runtime.program.logical_plan import (
    analysed_plan,
    class_name,
    elements,
    source_logs,
    source_options,
    streaming_sources,
)
from slackwater.runtime.run.failures import KNOWN_ERRORS, SPARK_ERRORS, reason_of
from slackwater.runtime.run.query import BuiltStream
from slackwater.sources import kind_described, kind_of, kinds
from slackwater.sources.common.contract import EarlyEnd, End, Reached, SourceRange
from slackwater.sources.common.source import Source
from slackwater.storage.open import open_write_store
from slackwater.storage.protocols import ReadStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


log = structlog.get_logger(__name__)


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
        logs = read_logs(self._store)
        newest, entry = logs.newest_offset, self._pending(logs)
        if newest is None or entry is None:
            return False, ""
        batch = logs.planned + 1
        caught_up = was_caught_up(self._ledger, self._generation, logs.planned, _text(newest))
        reached = "end" if caught_up else reached_end(self._ledger, self._generation, logs.planned, newest)
        backlog = "none" if reached == "end" else backlog_of(self._built.frame, self._store, newest)
        if backlog == "none":
            write_log(self._store, offset_path(batch), render_offset_entry(entry))
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
        try:
            logs = read_logs(self._store)
            newest = logs.newest_offset if self._pending(logs) is not None else None
            if newest is not None and backlog_of(self._built.frame, self._store, newest) == "none":
                name, number = self._generation.stream, self._generation.number
                self._ledger.record_lines([LogLine(name, number, CAUGHT_UP, logs.planned, _text(newest))])
        except KNOWN_ERRORS as error:
            log.warning("unread data was not looked for", stream=self._generation.stream, error=str(error))

    def _pending(self, logs: CheckpointLogs) -> OffsetEntry | None:
        enabled = self._built.frame.sparkSession.conf.get(NO_DATA_BATCHES, "true") != "false"
        now_ms = self._ledger.now_ms()
        return no_data_entry(logs, self._built.profile, self._output_mode, enabled=enabled, now_ms=now_ms)


def _text(entry: OffsetEntry) -> str:
    return render_offset_entry(entry).decode("utf-8", "surrogateescape")


def was_caught_up(ledger: Ledger, generation: GenerationRecord, batch: int, entry: str) -> bool:
    lines = ledger.lines(generation.stream, CAUGHT_UP, batch, batch, generation=generation.number)
    return lines.get(batch) == entry


Backlog = Literal["none", "unread", "unknown"]
SUPPORTS_LIMITS = "org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl"


def backlog_of(frame: DataFrame, checkpoint: ReadStore, entry: OffsetEntry) -> Backlog:
    """The sources' backlog. ``unknown``: a source cannot be asked, and no other has data."""
    found: Backlog = "none"
    plan = analysed_plan(frame)
    for relation, log_number, offset in zip(streaming_sources(plan), source_logs(plan), entry.offsets, strict=False):
        source = log_number if offset.source.isdecimal() else offset.source
        read = offset.text
        try:
            # Otherwise the source cannot be asked without taking rows from it.
            if not kind_described(str(relation.sourceName())).may_be_asked:
                found = "unknown"
                continue
            with tempfile.TemporaryDirectory() as folder:
                _copy(checkpoint, f"sources/{source}", Path(folder))
                latest = _latest(frame.sparkSession.sparkContext._jvm, relation, f"file://{folder}", read)
        except SPARK_ERRORS as error:
            log.warning("cannot determine whether a source has unread data", reason=reason_of(error))
            found = "unknown"
            continue
        # As Spark compares offsets: by their JSON.
        if latest is not None and (read is None or json.loads(latest) != json.loads(read)):
            return "unread"
    return found


def _copy(store: ReadStore, path: str, into: Path) -> None:
    """Copy the source's log: the source reads and writes it."""
    for folder in store.folders(path):
        below = into / folder.path.removeprefix(path).lstrip("/")
        below.mkdir(parents=True, exist_ok=True)
        for name in folder.files:
            if not name.startswith("."):
                (below / name).write_bytes(store.read(f"{folder.path}/{name}"))


def _latest(jvm: Any, relation: Any, log_path: str, read: str | None) -> str | None:
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
        start = None
        if read is not None:
            streaming = jvm.org.apache.spark.sql.execution.streaming
            since_4_1 = streaming.runtime.SerializedOffset
            start = (since_4_1 if isinstance(since_4_1, JavaClass) else streaming.SerializedOffset)(read)
        return _json(source.latestOffset(start, source.getDefaultReadLimit()))
    finally:
        source.stop()


def _json(offset: Any) -> str | None:
    return None if offset is None else str(offset.json())


def _is_a(jvm: Any, value: Any, interface: str) -> bool:
    return bool(jvm.py4j.reflection.TypeUtil.isInstanceOf(interface, value))


def check_reads_all(stream: str, frame: DataFrame) -> None:
    """Raises Refused (``source-ends-early``) if the run would end after one batch, as if caught up."""
    gateway: Any = frame.sparkSession.sparkContext._gateway
    for number, relation in enumerate(streaming_sources(analysed_plan(frame))):
        # Only a ``StreamingRelationV2`` has a table, whose class is from the jar of the connector.
        if class_name(relation) == "StreamingRelation":
            continue
        loaded = relation.table().getClass()
        for early in (one.early_end for one in kinds() if loaded.getName().startswith(one.package)):
            if early is None:
                continue
            version = _version(gateway, loaded.getClassLoader(), early)
            option = early.limit_of(version, source_options(relation))
            if option is not None:
                fixed = ".".join(map(str, early.fixed_in))
                raise Refused(
                    "source-ends-early",
                    f"A run of stream {stream} with the trigger available-now would end after one batch, whatever is "
                    "left to read",
                    where=f"source {number} ({relation.sourceName()})",
                    expected=f"version {fixed} or later of the connector, or no option {option}",
                    found=f"version {version}, and the option {option}",
                    hint=f"use version {fixed} or later of the connector, or remove the option {option}; "
                    "a run with a different trigger reads everything",
                )


def _version(gateway: Any, loader: Any, early: EarlyEnd) -> str:
    # By reflection: py4j looks a class up by its own loader, which need not have the session's jars.
    classes, values = (
        gateway.new_array(java, 0) for java in (gateway.jvm.java.lang.Class, gateway.jvm.java.lang.Object)
    )
    try:
        return str(loader.loadClass(early.version_class).getMethod("version", classes).invoke(None, values))
    except Py4JJavaError:
        # A build that does not have the class or its method: it is not judged.
        return "unknown"


class EndOfRun:
    def __init__(self, query: StreamingQuery, ledger: Ledger, generation: GenerationRecord, run: int) -> None:
        self._query = query
        self._ledger = ledger
        self._generation = generation
        self._run = run
        self._sources: list[tuple[Any, str, tuple[Source, Any] | None]] = []
        """A source, its number, and its kind with the field that has its end."""

    def record(self) -> bool:
        """Try once to record the positions; returns whether they are recorded.

        Raises an exception of ``SPARK_ERRORS`` if Spark's internals differ.
        """
        if not self._sources:
            distinct: list[Any] = []
            for source in elements(self._query._jsq.streamingQuery().sources()):
                # One that the query reads twice has two offsets and one log.
                distinct += [] if source in distinct else [source]
                self._sources.append((source, str(distinct.index(source)), _field_of(source)))
        ends: list[End] = []
        for source, number, of_kind in self._sources:
            if of_kind is None:
                ends.append({})
                continue
            kind, field = of_kind
            value = field.get(source)
            end = None if value is None else kind.fixed_end(value, number, _log(self._ledger, self._generation, number))
            if end is None:
                return False
            ends.append(end)
        if ends:
            of = self._generation
            self._ledger.record_lines([LogLine(of.stream, of.number, AVAILABLE_NOW, self._run, json.dumps(ends))])
        return bool(ends)


def reached_end(ledger: Ledger, generation: GenerationRecord, batch: int, entry: OffsetEntry) -> Reached:
    """Return whether ``batch`` was the last with data of the newest recorded run that ends by itself.

    ``before``: the run had data left, or files that its source ignores.
    """
    name, number = generation.stream, generation.number
    try:
        run = max(ledger.recorded_entries(name, number, AVAILABLE_NOW), default=None)
        if run is None:
            of_batch = next(iter(ledger.batches(name, batch, batch, generation=number)), None)
            if of_batch is None or of_batch.run is None:
                return "unknown"
            number, run = of_batch.generation, of_batch.run
            read = ledger.own_lines(name, number, OFFSETS, [batch]).get(batch)
            # A reset gives the id of a batch other positions.
            if read is None or parse_offset_entry(read.encode()).offsets != entry.offsets:
                return "unknown"
        recorded = ledger.own_lines(name, number, AVAILABLE_NOW, [run]).get(run)
        if recorded is None:
            return "unknown"
        ends: list[End] = json.loads(recorded)
        if len(ends) != len(entry.offsets):
            return "unknown"
        found = {
            _reached(end, ledger, generation, offset.text) for end, offset in zip(ends, entry.offsets, strict=True)
        }
    except (ValueError, LookupError, TypeError, AttributeError, FormatError):
        # A record that cannot be parsed decides nothing: the sources are asked instead.
        return "unknown"
    if "unknown" in found:
        return "unknown"
    return "before" if "before" in found else "end"


def _reached(end: End, ledger: Ledger, generation: GenerationRecord, offset: str | None) -> Reached:
    if not end:
        return "unknown"
    source = str(end.get("source"))
    log = _log(ledger, generation, source)
    if offset is None:
        # A source without an offset does not show its kind: each kind compares the end with having read nothing.
        nothing = [(kind, kind.nothing_read) for kind in kinds() if kind.nothing_read is not None]
        found = {kind.reached(end, SourceRange(source, None, read, log)) for kind, read in nothing}
        return "end" if "end" in found else "unknown"
    return kind_of(offset, log).reached(end, SourceRange(source, None, offset, log))


def _log(ledger: Ledger, generation: GenerationRecord, source: str) -> dict[int, str]:
    return ledger.lines(generation.stream, SOURCES + source)


def _field_of(source: Any) -> tuple[Source, Any] | None:
    of = source.getClass()
    while of is not None:
        known = {kind.end_field: kind for kind in kinds() if kind.end_field and of.getName().startswith(kind.package)}
        for field in of.getDeclaredFields():
            if str(field.getName()) in known:
                # The fields are private, and the sources have no method that returns them.
                field.setAccessible(True)
                return known[str(field.getName())], field
        of = of.getSuperclass()
    return None
