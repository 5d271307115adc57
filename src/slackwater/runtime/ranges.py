"""A batch from one target to another, of what no batch has read: what a checkpoint needs to have it planned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from slackwater.formats.compactible import lay_out
from slackwater.formats.file_source_log import parse_file_source_log, render_source_file
from slackwater.model.checkpoint_logs import SourceFile
from slackwater.runtime.kafka_offsets import as_json
from slackwater.runtime.source_seen import Position, out_of_range
from slackwater.sources.contract import EmptyBase, SourceRange
from slackwater.sources.files import NO_FILES, Files
from slackwater.sources.kafka import Kafka, Partition, positions_of
from slackwater.sources.opaque import encoded
from slackwater.sources.registry import kind_of

SHOWN = 3
_FILES, _KAFKA = Files(), Kafka()
_FIRST = '{"logOffset":0}'


@dataclass(frozen=True, slots=True)
class Range:
    """One batch of one source: ``start``, and ``end`` as Spark writes it; equal for an empty one.

    ``log`` is the whole of ``sources/<source>/``, also for the empty batch at ``start`` before it. ``summary`` is for
    people.
    """

    start: str
    end: str
    log: Mapping[str, bytes] = field(default_factory=dict)
    summary: str = "nothing"


@dataclass(frozen=True, slots=True)
class Claims:
    """What a stream has of a source: ``live`` is from the beginning to where it is, ``read`` is by its batches."""

    live: SourceRange
    read: Sequence[SourceRange]


def range_between(start: Position, end: Position, claims: Claims, *, interval: int, to_next: bool) -> Range:
    """The range between two results of ``resolve`` for one source. Offsets alone do not make a range of files.

    Files that batches have read, or that the stream will read by itself, are left out. ``to_next``: nobody has asked
    for this end; of Kafka the range is then the first stretch of each partition that no batch has read. ``interval`` is
    that of compactions of file logs.

    Raises Refused (``target-out-of-range``) where an end that was asked for is before the start.
    """
    if kind_of(start.base.end, {}).kind == Files.kind:
        return _files_between(claims, start.base, end.base, interval, to_next=to_next)
    if kind_of(start.base.end, {}).kind == Kafka.kind:
        return _offsets_between(claims, start.base, end.base, to_next=to_next)
    return Range(start.base.end, end.base.end, start.base.log)


def _files_between(claims: Claims, start: EmptyBase, end: EmptyBase, interval: int, *, to_next: bool) -> Range:
    before, after = _files_of(start), _files_of(end)
    if not to_next:
        _refuse_backward(claims.live.source, [path for path in before if path not in after])
    new = [file for path, file in after.items() if path not in before]
    free = set(_FILES.free(claims.live, claims.read))
    counted = {file.path for file in _FILES.files(claims.live)}
    wanted = [file for file in new if file.path in free]
    left_out = (
        (sum(file.path in counted - free for file in new), "that batches have read"),
        (sum(file.path not in counted for file in new), "that the stream reads by itself"),
    )
    parts = [f"{count} {why} left out" for count, why in left_out if count]
    summary = "; ".join([f"{len(wanted)} files", *parts])
    if not wanted:
        return Range(NO_FILES, NO_FILES, summary=summary)
    lines = [render_source_file(replace(file, log_offset=0)) for file in wanted]
    log = {name: encoded(content) for name, content in lay_out({0: lines}, 0, interval).items()}
    return Range(NO_FILES, _FIRST, log, summary)


def _files_of(base: EmptyBase) -> Mapping[str, SourceFile]:
    # Compacted entries repeat the files of others.
    return {file.path: file for content in base.log.values() for file in parse_file_source_log(content)}


def _offsets_between(claims: Claims, start: EmptyBase, end: EmptyBase, *, to_next: bool) -> Range:
    starts, ends = positions_of(start.end), positions_of(end.end)
    # A partition may have been added between the two.
    before, after = ({one: at[one] for one in starts.keys() & ends.keys()} for at in (starts, ends))
    if to_next:
        before, after = _next_free(claims, before, after)
    source = claims.live.source
    _refuse_backward(
        source, [f"{topic}-{number}" for (topic, number), at in sorted(before.items()) if after[topic, number] < at]
    )
    base = _KAFKA.empty_base(as_json(before))
    log = {} if base is None else base.log
    moves = [f"{topic}-{number}: {at} -> {after[topic, number]}" for (topic, number), at in sorted(before.items())]
    count = sum(after[one] - at for one, at in before.items())
    return Range(as_json(before), as_json(after), log, f"{count} offsets; {_listed(moves)}")


def _next_free(
    claims: Claims, before: Mapping[Partition, int], after: Mapping[Partition, int]
) -> tuple[dict[Partition, int], dict[Partition, int]]:
    """Of each partition the first stretch that no batch has read; at its start, and empty, where there is none."""
    free = _KAFKA.free_ranges(claims.live, claims.read) or {}
    starts, ends = dict(before), dict(before)
    for partition, at in before.items():
        stretches = ((max(low, at), min(high, after[partition])) for low, high in free.get(partition, ()))
        starts[partition], ends[partition] = next((one for one in stretches if one[0] < one[1]), (at, at))
    return starts, ends


def _refuse_backward(source: str, found: Sequence[str]) -> None:
    if found:
        raise out_of_range(
            f"source {source}",
            "the range ends before it starts",
            found=_listed(found),
            hint="give --to a target that is not before that of --from",
        )


def _listed(found: Sequence[str]) -> str:
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return ", ".join(found[:SHOWN]) + more
