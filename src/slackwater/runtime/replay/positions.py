"""Finds the position of each source at a target, for a new checkpoint.

Asks as the query does: brokers through the session's JVM, files by Spark's listing. Starts nothing and writes nothing
lasting.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from slackwater.core.errors import UsageError
from slackwater.core.targets import Target
from slackwater.core.units import iso_text
from slackwater.formats.compactible import DEFAULT_INTERVAL
from slackwater.operations.plan.targets import WantedPosition, target_text
from slackwater.runtime.program.logical_plan import analysed_plan, source_options, streaming_sources
from slackwater.runtime.run.failures import SPARK_ERRORS, reason_of
from slackwater.sources import UNKNOWN, kind_described, kind_of, kinds_of_format
from slackwater.sources.common.contract import (
    EmptyBase,
    Position,
    Served,
    SourceEntries,
    SourceRange,
    SourceSeen,
    SparkSource,
    out_of_range,
    unrecorded,
    unsupported,
)
from slackwater.sources.common.source import LiveSource, Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


COMPACT_INTERVAL = "spark.sql.streaming.fileSource.log.compactInterval"


def served_positions(frame: DataFrame) -> Mapping[str, Served]:
    """Maps source numbers to positions. Raises EnvironmentMissing if a source does not answer."""
    found = {}
    for source in spark_sources(frame):
        live = kind_described(source.description).live()
        try:
            served = live.served(source)
        except SPARK_ERRORS as error:
            raise live.unreachable(source, reason_of(error)) from error
        if served is not None:
            found[source.name] = served
    return found


def rows_served(frame: DataFrame, span: SourceRange, was: Mapping[str, str]) -> int | None:
    """A range's remaining rows, by a batch read; ``None`` if there is none.

    ``was`` are the original read's options. Raises EnvironmentMissing.
    """
    for source in spark_sources(frame):
        kind = kind_described(source.description)
        options = kind.batch_read(span, source.options, was) if source.name == span.source else None
        if options is None:
            continue
        try:
            return frame.sparkSession.read.format(source.description).options(**options).load().count()
        except SPARK_ERRORS as error:
            raise kind.live().unreachable(source, reason_of(error)) from error
    return None


def compact_interval(spark: SparkSession) -> int:
    return int(spark.conf.get(COMPACT_INTERVAL, str(DEFAULT_INTERVAL)) or DEFAULT_INTERVAL)


def resolve(frame: DataFrame, asked: WantedPosition) -> Mapping[str, Position]:
    """The resolved positions, by number in the offset log.

    A base's ``log`` is all of ``sources/<source>/``; its entry numbers may mean other files than before.

    Raises UsageError (``target``) for an unknown source or another kind's offsets; Refused ``target-out-of-range`` or
    ``target-unsupported`` (unknown position); EnvironmentMissing.
    """
    (target, offsets), current, logs, now_ms, only_source = asked
    wanted = _at_source(target, now_ms)
    if only_source is None and wanted.kind == "earliest":
        # What was read does not matter for the beginning, so that there may be more or fewer sources than recorded.
        current, logs = (current, logs) if len(streaming_sources(analysed_plan(frame))) == len(current) else ({}, {})
    sources = _sources(frame, current, logs)
    given = offsets or {}
    chosen = set(sources) if only_source is None else {only_source}
    moved = chosen & given.keys() if target.kind == "offsets" else chosen
    unknown = sorted((chosen | given.keys()) - sources.keys())
    if unknown:
        raise UsageError(
            "target",
            "The query has no source of this name",
            expected=", ".join(f"{one.name} ({one.spark.description})" for one in sources.values()),
            found=unknown[0][:60],
            hint="sources are numbered from 0 in the order of the query",
        )
    if not moved:
        raise UsageError(
            "target",
            "The file has no offset of the source",
            expected=f"source {only_source}",
            found=", ".join(given) or "no source",
            hint="add the source to the file, or choose a different source with --only-source",
        )
    return {
        name: _position(source, wanted, given.get(name)) if name in moved else _unmoved(source)
        for name, source in sources.items()
    }


def _at_source(target: Target, now_ms: int) -> Target:
    """The target with a time in place of a duration. Raises Refused for a future time."""
    if target.kind == "by":
        return Target("time", max(now_ms - target.number, 0))
    if target.kind == "time" and target.number > now_ms:
        raise out_of_range(
            target_text(target),
            "the time is in the future",
            expected=f"a time up to {iso_text(now_ms)}",
            found=iso_text(target.number),
        )
    return target


def _sources(
    frame: DataFrame, current: Mapping[str, str | None], logs: Mapping[str, SourceEntries]
) -> Mapping[str, SourceSeen]:
    found = spark_sources(frame)
    names = [source.name for source in found]
    if current and set(current) != set(names):
        raise unsupported(
            "the query",
            "it does not have the sources of the recorded batches",
            expected=f"sources {', '.join(current)}",
            found=f"sources {', '.join(names)}",
        )
    interval = compact_interval(frame.sparkSession)
    sources = {
        source.name: SourceSeen(source, current.get(source.name), logs.get(source.name, {}), interval)
        for source in found
    }
    for one in found:
        first = next(earlier for earlier in found if earlier.relation.equals(one.relation))
        # Spark numbers source logs without repeated sources, unlike offsets.
        if first is not one:
            raise unsupported(
                one.where,
                "the query reads one streaming DataFrame more than once",
                found=f"source {one.name} is source {first.name} again",
            )
    for source in sources.values():
        recorded, named = kind_of(source.current, source.log), kind_described(source.spark.description)
        expected: tuple[Source, ...] = (named,)
        if named is UNKNOWN:
            # A source of version 2 is described when it has started: the plan has the name of its format.
            expected = () if recorded is UNKNOWN else tuple(kinds_of_format(source.spark.description))
        if source.current is not None and expected and recorded not in expected:
            raise unsupported(
                source.where,
                "the recorded position belongs to a different kind of source than the query's",
                expected=" or ".join(one.kind for one in expected),
                found=recorded.kind,
                hint="a query whose sources were replaced is a new stream: give it a new name and a new output",
            )
    return sources


def spark_sources(frame: DataFrame) -> list[SparkSource]:
    jvm: Any = frame.sparkSession.sparkContext._jvm
    return [
        SparkSource(str(number), str(one.sourceName()), jvm, one, source_options(one), SPARK_ERRORS)
        for number, one in enumerate(streaming_sources(analysed_plan(frame)))
    ]


def _position(source: SourceSeen, target: Target, given: str | None) -> Position:
    named = kind_described(source.spark.description)
    # Of a source that Spark names otherwise, no more than what is recorded is known.
    live = LiveSource(kind_of(source.current, source.log)) if named is UNKNOWN else named.live()
    try:
        return live.position(source, target, given)
    except SPARK_ERRORS as error:
        raise live.unreachable(source.spark, reason_of(error)) from error


def _unmoved(source: SourceSeen) -> Position:
    kind = kind_of(source.current, source.log)
    end = kind_described(source.spark.description).nothing_read if source.current is None else source.current
    if end is None:
        raise unsupported(
            source.where,
            "there is no recorded position at which the source could stay",
            hint="name a position for it as well",
        )
    entries = kind.unrecorded(source.read._replace(end=end))
    if entries:
        raise unrecorded(source, entries)
    return source.at(EmptyBase(end, kind.log_until(end, source.log, source.interval)), "does not move")
