"""Kafka: ``{"topic":{"0":123}}`` holds the next offset to read of each partition.

``sources/<source>/0`` holds the initial offsets, so that ``latest`` is fixed; a zero byte precedes its version, which
kept Spark 2.1.0 from failing on the file (SPARK-19517). The Event Hubs connector writes the same shapes; its
checkpoints cannot be distinguished from Kafka's. Facts: docs/format.md, section 6.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

from slackwater.core.checkpoint import SourceFile
from slackwater.core.errors import FormatError
from slackwater.formats.text_log import LEADING, parse_object, shown, split_log
from slackwater.sources.common.contract import (
    Claims,
    EmptyBase,
    End,
    Range,
    Reach,
    Reached,
    RestartEffect,
    SourceEntries,
    SourceRange,
    decoded,
    is_index,
    is_long,
    listed,
    log_shape,
    may_be_initial_offsets,
    refuse_backward,
    scala_map,
)
from slackwater.sources.common.source import NO_OFFSET, Source, encoded
from slackwater.sources.common.source import LiveSource as LiveSource

NEWEST_VERSION = 1
_LEADING = LEADING.encode()


def parse_initial_offsets(data: bytes) -> str:
    """The offsets as ``{topic: {partition: offset}}``, as Spark writes them. Raises ``FormatError``."""
    _, lines = split_log(data.removeprefix(_LEADING), newest=NEWEST_VERSION)
    text = "\n".join(lines).strip()
    record = parse_object(text, "the initial offsets")
    if not all(isinstance(partitions, dict) for partitions in record.values()):
        raise FormatError("foreign", "not offsets by topic", expected="{topic: {partition: offset}}", found=shown(text))
    return text


def render_initial_offsets(text: str) -> bytes:
    return _LEADING + b"v1\n" + text.encode()


_INITIAL = 0
_ISOLATION = "kafka.isolation.level"

Partition: TypeAlias = tuple[str, int]
"""A topic and the number of one of its partitions."""


class Kafka(Source):
    """Positions are offsets by topic and partition; an unlisted partition starts at 0."""

    kind = "kafka"
    live_module = "slackwater.sources.kafka.live"
    has_empty_base = True
    shows_what_is_free = True
    shows_what_is_served = True
    formats = frozenset({"kafka"})
    connectors = frozenset({"kafka"})
    harmless_options = frozenset(
        {
            *("failondataloss", "fetchoffset.numretries", "fetchoffset.retryintervalms", "groupidprefix"),
            *("kafka.group.id", "kafkaconsumer.polltimeoutms", "maxoffsetspertrigger", "maxrecordsperpartition"),
            *("maxtriggerdelay", "minoffsetspertrigger", "minpartitions"),
        }
    )
    strict_options = MappingProxyType({"failondataloss": "true"})
    start_options = frozenset(
        {"startingoffsets", "startingoffsetsbytimestamp", "startingoffsetsbytimestampstrategy", "startingtimestamp"}
    )
    end_field = "allDataForTriggerAvailableNow"
    transient_errors = re.compile(
        r"org\.apache\.kafka\.common\.errors\.(TimeoutException|DisconnectException|NetworkException"
        r"|NotLeaderOrFollowerException|LeaderNotAvailableException|CoordinatorNotAvailableException"
        r"|BrokerNotAvailableException)"
    )
    failures = (
        (
            "data-loss",
            re.compile(r"\[KAFKA_DATA_LOSS|ome data may have been (lost|missed)|\(KafkaIllegalStateException\)"),
        ),
        (
            "source-changed",
            re.compile(
                r"\[MISMATCHED_TOPIC_PARTITIONS|\[KAFKA_START_OFFSET_DOES_NOT_MATCH|Expected e\.g\. \{\"topicA\""
            ),
        ),
    )
    restart_effect: RestartEffect = (
        "stuck",
        (
            "startingOffsets must name every partition that the topic has when the query starts: one that was added "
            "since has to be added by hand, as -2 (earliest), or the query fails"
        ),
    )
    example = '{"topic": {"0": 123}}: by topic and partition, the next offset to read'

    def is_named(self, description: str) -> bool:
        return description == "kafka" or description.startswith("KafkaV2[")

    def owns(self, offset: object, log: SourceEntries) -> bool:
        if offset is None:
            return log_shape(log) == "kafka"
        return bool(_positions(offset))

    def empty_base(self, start: str | None) -> EmptyBase | None:
        if start is None or not positions_of(start):
            return None
        # Without the initial offsets Spark would ask the broker where to start, and the base would not be empty.
        return EmptyBase(start, {str(_INITIAL): render_initial_offsets(start)})

    def first_log(self, base: EmptyBase) -> Mapping[str, bytes] | None:
        return {str(_INITIAL): render_initial_offsets(base.end)}

    def rows(self, span: SourceRange) -> int | None:
        """The most rows; transactional or compacted topics have fewer, as markers and gaps have offsets, too."""
        ranges = self._ranges(span)
        return None if ranges is None else sum(max(end - start, 0) for start, end in ranges.values())

    def batch_read(
        self, span: SourceRange, options: Mapping[str, str], was: Mapping[str, str]
    ) -> Mapping[str, str] | None:
        """The options of a batch read; Spark pushes nothing into Kafka: a query reads every record."""
        ranges = {one: (start, end) for one, (start, end) in (self._ranges(span) or {}).items() if start < end}
        if not ranges:
            return None
        given = {name.lower(): value for name, value in options.items()}
        client = {name: value for name, value in given.items() if name.startswith("kafka.")}
        if was:
            # Rows of aborted transactions were read or left out as the query had it then.
            client[_ISOLATION] = was.get(_ISOLATION, "read_uncommitted")
        assigned: dict[str, list[int]] = {}
        for topic, partition in sorted(ranges):
            assigned.setdefault(topic, []).append(partition)
        starts, ends = ({one: bounds[side] for one, bounds in ranges.items()} for side in (0, 1))
        return {
            **client,
            "assign": json.dumps(assigned),
            "startingOffsets": as_json(starts),
            "endingOffsets": as_json(ends),
            "failOnDataLoss": "false",
        }

    def counted(self, span: SourceRange) -> Mapping[str, int | None] | None:
        ranges, starts = self._ranges(span), positions_of(span.start)
        if ranges is None:
            return None
        counted: dict[str, int | None] = {partition_name(one): end - start for one, (start, end) in ranges.items()}
        return counted | {partition_name(one): None for one in starts if one not in ranges}

    def unavailable(self, span: SourceRange, reach: Reach) -> tuple[str, ...]:
        ranges, oldest = self._ranges(span), reach.earliest(span.source)
        earliest, latest = positions_of(oldest), positions_of(reach.latest(span.source))
        # Without any topic the position is known, and empty.
        if ranges is None or not (earliest or decoded(oldest) == {}):
            return ()
        lost = (
            _loss(partition, start, end, (earliest.get(partition), latest.get(partition)))
            for partition, (start, end) in sorted(ranges.items())
            if start < end
        )
        return tuple(line for line in lost if line is not None)

    def claimed(self, span: SourceRange, live: SourceRange, read: Sequence[SourceRange]) -> tuple[str, ...] | None:
        wanted, free = self._ranges(span), self.free_ranges(live, read)
        if wanted is None or free is None:
            return None
        return tuple(
            _offsets(partition, start, end)
            for partition, (start, end) in sorted(wanted.items())
            if start < end and not any(low <= start and end <= high for low, high in free.get(partition, ()))
        )

    def free(self, live: SourceRange, read: Sequence[SourceRange]) -> tuple[str, ...]:
        ranges = self.free_ranges(live, read) or {}
        return tuple(_offsets(one, low, high) for one, found in sorted(ranges.items()) for low, high in found)

    def free_ranges(
        self, live: SourceRange, read: Sequence[SourceRange]
    ) -> Mapping[Partition, Sequence[tuple[int, int]]] | None:
        """The ranges before ``live`` that no range in ``read`` covers, as first and next offsets.

        ``None`` if a start is unknown. Omits partitions without a live position.
        """
        taken: dict[Partition, list[tuple[int, int]]] = {}
        for one in read:
            ranges = self._ranges(one)
            if ranges is None:
                return None
            for partition, bounds in ranges.items():
                taken.setdefault(partition, []).append(bounds)
        return {one: _between(taken.get(one, ()), end) for one, end in positions_of(live.end).items()}

    def initial(self, log: SourceEntries) -> str | None:
        return parse_initial_offsets(encoded(log[_INITIAL])) if _INITIAL in log else None

    def describe(self, offset: str | None) -> str:
        positions = positions_of(offset)
        listed = ", ".join(f"{topic}-{partition}: {position}" for (topic, partition), position in positions.items())
        return listed or offset or NO_OFFSET

    def entry_parser(self, data: bytes) -> Callable[[bytes], object] | None:
        entry = data.decode("utf-8", "surrogateescape")
        return parse_initial_offsets if may_be_initial_offsets(entry) else None

    def range_between(self, start: EmptyBase, end: EmptyBase, claims: Claims, *, to_next: bool) -> Range:
        """With ``to_next``, the first unread stretch of each partition."""
        starts, ends = positions_of(start.end), positions_of(end.end)
        # A partition may have been added between the two.
        before, after = ({one: at[one] for one in starts.keys() & ends.keys()} for at in (starts, ends))
        if to_next:
            before, after = self._next_free(claims, before, after)
        moves = sorted(before.items())
        refuse_backward(claims.live.source, [partition_name(one) for one, at in moves if after[one] < at])
        base = self.empty_base(as_json(before))
        shown = [f"{partition_name(one)}: {at} -> {after[one]}" for one, at in moves]
        count = sum(after[one] - at for one, at in moves)
        log = {} if base is None else base.log
        return Range(as_json(before), as_json(after), log, f"{count} offsets; {listed(shown)}")

    def _next_free(
        self, claims: Claims, before: Mapping[Partition, int], after: Mapping[Partition, int]
    ) -> tuple[dict[Partition, int], dict[Partition, int]]:
        free = self.free_ranges(claims.live, claims.read) or {}
        starts, ends = dict(before), dict(before)
        for partition, at in before.items():
            stretches = ((max(low, at), min(high, after[partition])) for low, high in free.get(partition, ()))
            starts[partition], ends[partition] = next((one for one in stretches if one[0] < one[1]), (at, at))
        return starts, ends

    def fixed_end(self, value: Any, source: str, log: SourceEntries) -> End | None:
        return {"partitions": scala_map(value)}

    def reached(self, end: End, span: SourceRange) -> Reached:
        read = {partition_name(one): at for one, at in positions_of(span.end).items()}
        fixed = {partition: int(position) for partition, position in end["partitions"].items()}
        if read == fixed:
            return "end"
        left = any(position > read.get(partition, 0) for partition, position in fixed.items())
        return "before" if left else "unknown"

    def location(self, offset: str | None) -> str:
        topics = sorted({topic for topic, _ in positions_of(offset)})
        return f"topics {','.join(topics)}" if topics else ""

    def continues(self, was: str, now: str) -> bool:
        """Return whether a location continues an earlier location: true if topics were added."""
        topics = [set(location.removeprefix("topics ").split(",")) for location in (was, now)]
        return was.startswith("topics ") and topics[0] < topics[1]

    def is_client_option(self, key: str, before: str | None, after: str | None) -> bool:
        if key == "kafka.bootstrap.servers" and before and after:
            # With a broker in common it is the same cluster, whose brokers are added and replaced.
            return bool(set(before.split(",")) & set(after.split(",")))
        if key == _ISOLATION:
            # ``read_committed`` leaves out the rows of aborted transactions.
            return {before, after} <= {None, "read_uncommitted"}
        return key.startswith("kafka.")

    def restart_fields(
        self, offset: str | None, files_read: int | None, files_to_come: Sequence[SourceFile]
    ) -> Mapping[str, object]:
        return {"starting_offsets": decoded(offset)}

    def _ranges(self, span: SourceRange) -> dict[Partition, tuple[int, int]] | None:
        starts = positions_of(self.initial(span.log) if span.start is None else span.start)
        ends = positions_of(span.end)
        if not starts or not ends:
            return None
        return {partition: (starts.get(partition, 0), end) for partition, end in ends.items()}


def _between(taken: Sequence[tuple[int, int]], end: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    low = 0
    for first, after in [*sorted(taken), (end, end)]:
        high = min(first, end)
        if low < high:
            found.append((low, high))
        low = max(low, after)
    return found


def _offsets(partition: Partition, start: int, end: int) -> str:
    return f"{partition_name(partition)}: offsets {start} to {end - 1}"


def partition_name(partition: Partition) -> str:
    return f"{partition[0]}-{partition[1]}"


def positions_of(offset: str | None) -> dict[Partition, int]:
    return _positions(decoded(offset))


def as_json(offsets: Mapping[Partition, int]) -> str:
    topics: dict[str, dict[str, int]] = {}
    for (topic, number), offset in sorted(offsets.items()):
        topics.setdefault(topic, {})[str(number)] = offset
    return json.dumps(topics, separators=(",", ":"))


def _loss(partition: Partition, start: int, end: int, served: tuple[int | None, int | None]) -> str | None:
    """The lost part of a range in a partition that serves these offsets (oldest, end)."""
    (earliest, latest), name = served, partition_name(partition)
    if earliest is None:
        return f"{name}: offsets {start} to {end - 1}; the partition no longer exists"
    if latest is not None and latest < end:
        gone = f"{name}: offsets {max(start, latest)} to {end - 1}"
        return f"{gone}; the partition ends at {latest}: the topic was created again or truncated"
    if start < earliest:
        return f"{name}: offsets {start} to {min(earliest, end) - 1}; the oldest that is left is {earliest}"
    return None


def _positions(offset: object) -> dict[Partition, int]:
    if not isinstance(offset, dict):
        return {}
    found: dict[Partition, int] = {}
    for topic, partitions in offset.items():
        if not isinstance(partitions, dict) or not partitions:
            return {}
        for partition, position in partitions.items():
            if not is_index(partition) or not is_long(position) or position < 0:
                return {}
            found[topic, int(partition)] = position
    return found


SOURCE = Kafka()
