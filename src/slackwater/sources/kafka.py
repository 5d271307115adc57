"""Kafka: ``{"topic":{"0":123}}`` holds the next offset to read of each partition.

``sources/<source>/0`` holds the initial offsets. The Event Hubs connector writes the same shapes and counts in the same
way; its checkpoints cannot be distinguished from Kafka's. Facts: checkpoint-format section 6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from slackwater.formats.kafka_initial_offsets import parse_initial_offsets, render_initial_offsets
from slackwater.sources.contract import EmptyBase, Reach, SourceEntries, SourceRange
from slackwater.sources.opaque import NO_OFFSET, OpaqueSource, encoded
from slackwater.sources.shapes import decoded, is_index, is_long, log_shape

_INITIAL = 0

Partition: TypeAlias = tuple[str, int]
"""A topic and the number of one of its partitions."""


class Kafka(OpaqueSource):
    """Positions are offsets by topic and partition; a partition that is not listed starts at offset 0."""

    kind = "kafka"

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
        """Exact for topics that are neither transactional nor compacted."""
        ranges = self._ranges(span)
        return None if ranges is None else sum(max(end - start, 0) for start, end in ranges.values())

    def counted(self, span: SourceRange) -> Mapping[str, int | None] | None:
        ranges, starts = self._ranges(span), positions_of(span.start)
        if ranges is None:
            return None
        counted: dict[str, int | None] = {_name(one): end - start for one, (start, end) in ranges.items()}
        return counted | {_name(one): None for one in starts if one not in ranges}

    def unavailable(self, span: SourceRange, reach: Reach) -> tuple[str, ...]:
        ranges, earliest = self._ranges(span), positions_of(reach.earliest(span.source))
        if ranges is None or not earliest:
            return ()
        return tuple(
            _loss(partition, start, end, earliest.get(partition))
            for partition, (start, end) in sorted(ranges.items())
            if start < end and start < earliest.get(partition, end)
        )

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
        """By partition what none of ``read`` has before the position of ``live``: the first offset, and the next one.

        ``None`` where the start of a range is unknown. Partitions without a live position are not in it.
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

    def _ranges(self, span: SourceRange) -> dict[Partition, tuple[int, int]] | None:
        """Start and end by partition; ``None`` where either is unknown."""
        starts = positions_of(self.initial(span.log) if span.start is None else span.start)
        ends = positions_of(span.end)
        if not starts or not ends:
            return None
        return {partition: (starts.get(partition, 0), end) for partition, end in ends.items()}


def _between(taken: Sequence[tuple[int, int]], end: int) -> list[tuple[int, int]]:
    """What is left from 0 to ``end``."""
    found: list[tuple[int, int]] = []
    low = 0
    for first, after in [*sorted(taken), (end, end)]:
        high = min(first, end)
        if low < high:
            found.append((low, high))
        low = max(low, after)
    return found


def _offsets(partition: Partition, start: int, end: int) -> str:
    return f"{_name(partition)}: offsets {start} to {end - 1}"


def _name(partition: Partition) -> str:
    return f"{partition[0]}-{partition[1]}"


def positions_of(offset: str | None) -> dict[Partition, int]:
    """The next offset by topic and partition; empty where the string is not one of Kafka's offsets."""
    return _positions(decoded(offset))


def _loss(partition: Partition, start: int, end: int, earliest: int | None) -> str:
    name = _name(partition)
    if earliest is None:
        return f"{name}: offsets {start} to {end - 1}; the partition no longer exists"
    return f"{name}: offsets {start} to {min(earliest, end) - 1}; the oldest that is left is {earliest}"


def _positions(offset: object) -> dict[Partition, int]:
    """The next offset by topic and partition; empty where the value is not one of Kafka's offsets."""
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
