"""Positions that a self-ending run's sources fixed at its start.

The run reads up to them, then executes the no-data batch. After a kill they show whether the newest batch was the last
with data. Spark keeps them in fields of its sources.

Refuses sources that end such a run too early.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError

from slackwater.checkpoint.layout import OFFSETS
from slackwater.core.checkpoint import OffsetEntry
from slackwater.core.errors import FormatError, Refused
from slackwater.core.records import GenerationRecord, LogLine
from slackwater.formats.offset_log import parse_offset_entry
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.lineage import AVAILABLE_NOW, SOURCES
from slackwater.runtime.logical_plan import analysed_plan, class_name, elements, source_options, streaming_sources
from slackwater.sources import kind_of, kinds
from slackwater.sources.common.contract import EarlyEnd, End, Reached, SourceRange
from slackwater.sources.common.source import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


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
                raise _refusal(stream, f"source {number} ({relation.sourceName()})", option, version, early)


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


def _refusal(stream: str, source: str, option: str, version: str, early: EarlyEnd) -> Refused:
    fixed = ".".join(map(str, early.fixed_in))
    return Refused(
        "source-ends-early",
        f"A run of stream {stream} with the trigger available-now would end after one batch, whatever is left to read",
        where=source,
        expected=f"version {fixed} or later of the connector, or no option {option}",
        found=f"version {version}, and the option {option}",
        hint=f"use version {fixed} or later of the connector, or remove the option {option}; "
        "a run with another trigger reads everything",
    )


@dataclass(frozen=True, slots=True)
class _Fixing:
    source: Any
    number: str
    field: tuple[Source, Any] | None


class EndOfRun:
    def __init__(self, query: StreamingQuery, ledger: Ledger, generation: GenerationRecord, run: int) -> None:
        self.recorded = False
        self._query = query
        self._ledger = ledger
        self._generation = generation
        self._run = run
        self._sources: list[_Fixing] = []

    def record(self) -> None:
        """Try once to record the positions. Raises an exception of ``SPARK_ERRORS`` if Spark's internals differ."""
        if not self._sources:
            self._sources = _sources_of(self._query)
        ends: list[End] = []
        for source in self._sources:
            end = _end_of(source, self._ledger, self._generation)
            if end is None:
                return
            ends.append(end)
        if ends:
            name, number = self._generation.stream, self._generation.number
            self._ledger.record_lines([LogLine(name, number, AVAILABLE_NOW, self._run, json.dumps(ends))])
            self.recorded = True


def _sources_of(query: StreamingQuery) -> list[_Fixing]:
    distinct: list[Any] = []
    found: list[_Fixing] = []
    for source in elements(query._jsq.streamingQuery().sources()):
        # One that the query reads twice has two offsets and one log.
        distinct += [] if source in distinct else [source]
        found.append(_Fixing(source, str(distinct.index(source)), _field_of(source)))
    return found


def reached_end(ledger: Ledger, generation: GenerationRecord, batch: int, entry: OffsetEntry) -> Reached:
    """Return whether ``batch`` was the last with data of the newest recorded run that ends by itself.

    ``before``: the run had data left, or files that its source ignores.
    """
    try:
        recorded = _newest_ends(ledger, generation, batch, entry)
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


def _newest_ends(ledger: Ledger, generation: GenerationRecord, batch: int, entry: OffsetEntry) -> str | None:
    name, number = generation.stream, generation.number
    runs = ledger.recorded_entries(name, number, AVAILABLE_NOW)
    run = max(runs, default=None)
    if run is None:
        found = next(iter(ledger.batches(name, batch, batch, generation=number)), None)
        if found is None or found.run is None:
            return None
        number, run = found.generation, found.run
        read = ledger.own_lines(name, number, OFFSETS, [batch]).get(batch)
        # A reset gives the id of a batch other positions.
        if read is None or parse_offset_entry(read.encode()).offsets != entry.offsets:
            return None
    return ledger.own_lines(name, number, AVAILABLE_NOW, [run]).get(run)


def _end_of(fixing: _Fixing, ledger: Ledger, generation: GenerationRecord) -> End | None:
    if fixing.field is None:
        return {}
    kind, field = fixing.field
    value = field.get(fixing.source)
    return None if value is None else kind.fixed_end(value, fixing.number, _log(ledger, generation, fixing.number))


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
