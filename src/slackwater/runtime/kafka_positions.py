"""Positions of Kafka sources: the next offset to read of each partition that exists now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import assert_never

from slackwater.errors import UsageError
from slackwater.model.targets import AtTime, Earliest, FromFile, Latest, Shift, SourceTarget
from slackwater.runtime.kafka_offsets import as_json, bounds, offsets_at
from slackwater.runtime.source_seen import Position, SourceSeen, out_of_range, unsupported
from slackwater.sources.kafka import Kafka, Partition, positions_of

SHOWN = 3
LISTED = 8
OFFSET_EXAMPLE = '{"topic": {"0": 123}}'

_Offsets = Mapping[Partition, int]


def kafka_position(source: SourceSeen, target: SourceTarget, given: str | None) -> Position:
    """The position of a Kafka source.

    Every partition that exists now is in it, and no other. One that the current position does not have has not been
    read: a shift and offsets that leave it out put it at its oldest record, where Spark would start it. Of a time it is
    the first record with that timestamp or a later one; a partition that has none is at its end.
    """
    earliest, latest = bounds(source.frame, source.relation)
    current = positions_of(source.current)
    note = ""
    match target:
        case Earliest():
            after = earliest
        case Latest():
            after = latest
        case AtTime():
            after = {
                one: at
                for one, at in offsets_at(source.frame, source.relation, target.time_ms).items()
                if one in latest
            }
            ended = [one for one, at in after.items() if at == latest[one]]
            note = f"; no record of that time or later: {_listed(map(_name, ended))}" if ended else ""
        case Shift():
            after = _shifted(source, earliest, current, target.count)
        case FromFile():
            after = _given(source, earliest, current, given)
        case _:
            assert_never(target)
    if isinstance(target, Shift | FromFile):
        _check_range(source, after, earliest, latest)
    base = Kafka().empty_base(as_json(after))
    if base is None:
        raise unsupported(
            source.where,
            "its topics have no partitions",
            hint="create the topics, or correct the source's subscription",
        )
    return source.at(base, _change(earliest, current, after) + note)


def _shifted(source: SourceSeen, earliest: _Offsets, current: _Offsets, count: int) -> _Offsets:
    if not current:
        raise unsupported(
            source.where,
            "there is no recorded position from which it could be shifted",
            hint="use earliest, latest, time:..., by:... or offsets:FILE",
        )
    return {one: current[one] + count if one in current else oldest for one, oldest in earliest.items()}


def _given(source: SourceSeen, earliest: _Offsets, current: _Offsets, given: str | None) -> _Offsets:
    wanted = positions_of(given)
    if not wanted:
        raise UsageError(
            "target",
            "This is not an offset of Kafka",
            where=source.where,
            expected=OFFSET_EXAMPLE,
            found=str(given)[:60],
            hint="by topic and partition, the next offset to read",
        )
    absent = [one for one in wanted if one not in earliest]
    if absent:
        raise out_of_range(
            source.where,
            "it has no such partitions",
            expected=_listed(map(_name, earliest)),
            found=_listed(map(_name, absent)),
            hint="list only partitions that exist and that the source reads",
        )
    unlisted = [] if current else [one for one in earliest if one not in wanted]
    if unlisted:
        raise unsupported(
            source.where,
            "there is no recorded position at which partitions could stay",
            found=_listed(map(_name, unlisted)),
            hint="list all partitions in the file",
        )
    return {one: wanted.get(one, current.get(one, oldest)) for one, oldest in earliest.items()}


def _check_range(source: SourceSeen, after: _Offsets, earliest: _Offsets, latest: _Offsets) -> None:
    outside = [one for one, at in after.items() if not earliest[one] <= at <= latest[one]]
    if outside:
        raise out_of_range(
            source.where,
            "the brokers do not have these offsets",
            expected=_listed((f"{_name(one)}: {earliest[one]} to {latest[one]}" for one in outside), SHOWN),
            found=_listed((f"{_name(one)}: {after[one]}" for one in outside), SHOWN),
        )


def _change(earliest: _Offsets, current: _Offsets, after: _Offsets) -> str:
    moves = {one: (current.get(one, earliest[one]), at) for one, at in after.items()}
    lines = (
        f"{_name(one)}: {start if one in current else 'new'} -> {at}" for one, (start, at) in sorted(moves.items())
    )
    counts = (
        (sum(max(start - at, 0) for start, at in moves.values()), "offsets are to be read again"),
        (sum(max(at - start, 0) for start, at in moves.values()), "offsets are skipped"),
    )
    parts = [f"{count} {what}" for count, what in counts if count]
    gone = sorted(current.keys() - after.keys())
    if gone:
        parts.append(f"no longer existing: {_listed(map(_name, gone))}")
    return "; ".join([_listed(lines), *parts])


def _name(partition: Partition) -> str:
    return f"{partition[0]}-{partition[1]}"


def _listed(items: Iterable[str], shown: int = LISTED) -> str:
    found = list(items)
    return ", ".join(found[:shown]) + (f" and {len(found) - shown} more" if len(found) > shown else "")
