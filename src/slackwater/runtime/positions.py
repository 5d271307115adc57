"""Where each source of a query is at a target, as a new checkpoint needs it to continue from exactly there.

Sources are asked as the query itself asks them: brokers through the session's JVM, files through Spark's own listing.
Nothing is started, and nothing is written that outlives the call.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

from slackwater.errors import UsageError
from slackwater.formats.compactible import DEFAULT_INTERVAL
from slackwater.model.targets import AtTime, ByDuration, Earliest, FromFile, PositionTarget, SourceTarget
from slackwater.model.units import iso_text
from slackwater.plan.targets import target_text
from slackwater.runtime.file_positions import file_position
from slackwater.runtime.kafka_positions import kafka_position
from slackwater.runtime.logical_plan import analysed_plan, streaming_sources
from slackwater.runtime.replay import COMPACT_INTERVAL
from slackwater.runtime.source_seen import Position, SourceSeen, out_of_range, unsupported
from slackwater.sources.contract import EmptyBase, SourceEntries, SourceRange
from slackwater.sources.files import NO_FILES, Files
from slackwater.sources.kafka import Kafka
from slackwater.sources.registry import UNKNOWN, kind_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FILE_SOURCE = "FileSource["
KAFKA_SOURCE = "kafka"


def resolve(
    frame: DataFrame,
    target: PositionTarget,
    current: Mapping[str, str | None],
    *,
    logs: Mapping[str, SourceEntries],
    now_ms: int,
    only_source: str | None = None,
    offsets: Mapping[str, str] | None = None,
) -> Mapping[str, Position]:
    """The position of each source of a streaming DataFrame at a target, by the source's number in the offset log.

    ``current`` are the offsets of the newest committed batch by source, empty where no batch has run. ``logs`` are the
    recorded entries of ``sources/<source>/`` by source. ``offsets`` is the content of the file of a ``FromFile``, as
    ``parse_offsets`` returns it. With ``only_source`` the other sources stay where they are; they are in the result
    too, as a checkpoint has a line for each.

    A base's ``log`` is the whole of ``sources/<source>/``: the entries of the source's own log that were recorded
    before do not belong to it, and entry numbers may mean other files than before.

    Raises UsageError (``target``) for a source that the query does not have, and for offsets of another kind of
    source; Refused ``target-out-of-range`` for what the source does not have, with what it has, and
    ``target-unsupported`` where the position is unknown, with what is possible instead; EnvironmentMissing where a
    broker or a store does not answer.
    """
    wanted = _at_source(target, now_ms)
    sources = _sources(frame, current, logs)
    given = offsets or {}
    chosen = set(sources) if only_source is None else {only_source}
    moved = chosen & given.keys() if isinstance(target, FromFile) else chosen
    _check_names(sources, chosen | given.keys())
    if not moved:
        raise UsageError(
            "target",
            "The file has no offset of the source",
            expected=f"source {only_source}",
            found=", ".join(given) or "no source",
            hint="add the source to the file, or name another one with --only-source",
        )
    return {
        name: _position(source, wanted, given.get(name)) if name in moved else _unmoved(source)
        for name, source in sources.items()
    }


def _at_source(target: PositionTarget, now_ms: int) -> SourceTarget:
    """The target without reference to the present. Raises Refused for a time in the future."""
    if isinstance(target, ByDuration):
        return AtTime(max(now_ms - target.back_ms, 0))
    if isinstance(target, AtTime) and target.time_ms > now_ms:
        raise out_of_range(
            target_text(target),
            "the time is in the future",
            expected=f"a time up to {iso_text(now_ms)}",
            found=iso_text(target.time_ms),
        )
    return target


def _check_names(sources: Mapping[str, SourceSeen], named: AbstractSet[str]) -> None:
    unknown = sorted(named - sources.keys())
    if unknown:
        raise UsageError(
            "target",
            "The query has no source of this name",
            expected=", ".join(f"{one.name} ({one.description})" for one in sources.values()),
            found=unknown[0][:60],
            hint="sources are numbered from 0 in the order of the query",
        )


def _sources(
    frame: DataFrame, current: Mapping[str, str | None], logs: Mapping[str, SourceEntries]
) -> Mapping[str, SourceSeen]:
    relations = streaming_sources(analysed_plan(frame))
    names = [str(number) for number in range(len(relations))]
    if current and set(current) != set(names):
        raise unsupported(
            "the query",
            "it does not have the sources of the recorded batches",
            expected=f"sources {', '.join(current)}",
            found=f"sources {', '.join(names)}",
        )
    interval = int(frame.sparkSession.conf.get(COMPACT_INTERVAL, str(DEFAULT_INTERVAL)) or DEFAULT_INTERVAL)
    sources = {
        name: SourceSeen(
            name, str(relation.sourceName()), frame, relation, current.get(name), logs.get(name, {}), interval
        )
        for name, relation in zip(names, relations, strict=True)
    }
    _refuse_repeated(sources, relations)
    for source in sources.values():
        _check_kind(source)
    return sources


def _refuse_repeated(sources: Mapping[str, SourceSeen], relations: list[Any]) -> None:
    """Spark numbers the logs of sources without the repeated ones: their numbers are not those of the offsets."""
    for index, name in enumerate(sources):
        first = next(earlier for earlier, relation in enumerate(relations) if relation.equals(relations[index]))
        if first < index:
            raise unsupported(
                sources[name].where,
                "the query reads one streaming DataFrame more than once",
                found=f"source {name} is source {first} again",
            )


def _check_kind(source: SourceSeen) -> None:
    recorded = kind_of(source.current, source.log).kind
    expected = _kind_in_query(source)
    if source.current is not None and expected not in {None, recorded}:
        raise unsupported(
            source.where,
            "the recorded position is of another kind of source than the query's",
            expected=expected,
            found=recorded,
            hint="a query whose sources were replaced is another stream: give it a new name and a new output",
        )


def _kind_in_query(source: SourceSeen) -> str | None:
    if source.description.startswith(FILE_SOURCE):
        return Files.kind
    return Kafka.kind if source.description == KAFKA_SOURCE else None


def _position(source: SourceSeen, target: SourceTarget, given: str | None) -> Position:
    kind = _kind_in_query(source)
    if kind == Files.kind:
        return file_position(source, target, given)
    if kind == Kafka.kind:
        return kafka_position(source, target, given)
    return _initial(source, target)


def _initial(source: SourceSeen, target: SourceTarget) -> Position:
    """Of the other kinds only the position before batch 0 can be known, where it is recorded."""
    kind = kind_of(source.current, source.log)
    initial = kind.initial(source.log) if isinstance(target, Earliest) else None
    if initial is None:
        named = "an unknown kind" if kind is UNKNOWN else f"kind {kind.kind}"
        raise unsupported(
            source.where,
            f"the source is of {named}, of which only a recorded position is known",
        )
    base = EmptyBase(initial, kind.log_until(initial, source.log, source.interval))
    return source.at(base, f"{kind.describe(source.current)} -> {kind.describe(initial)}")


def _unmoved(source: SourceSeen) -> Position:
    kind = kind_of(source.current, source.log)
    end = NO_FILES if source.current is None and _kind_in_query(source) == Files.kind else source.current
    if end is None:
        raise unsupported(
            source.where,
            "there is no recorded position at which the source could stay",
            hint="name a position for it as well",
        )
    unrecorded = kind.unrecorded(SourceRange(source.name, None, end, source.log))
    if unrecorded:
        raise source.unrecorded(unrecorded)
    return source.at(EmptyBase(end, kind.log_until(end, source.log, source.interval)), "does not move")
