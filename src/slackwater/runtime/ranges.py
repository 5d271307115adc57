"""A batch from one target to another: what a checkpoint needs to have it planned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from slackwater.formats.compactible import lay_out
from slackwater.formats.file_source_log import parse_file_source_log, render_source_file
from slackwater.model.checkpoint_logs import SourceFile
from slackwater.runtime.source_seen import Position, out_of_range
from slackwater.sources.contract import EmptyBase
from slackwater.sources.files import Files
from slackwater.sources.kafka import positions_of
from slackwater.sources.opaque import encoded
from slackwater.sources.registry import kind_of

SHOWN = 3
_FILES = Files()


def range_between(
    start: Mapping[str, Position], end: Mapping[str, Position], *, interval: int
) -> Mapping[str, EmptyBase]:
    """The end of the batch that reads what is between two results of ``resolve`` for one query, by source.

    Each ``end`` is the source's offset in the entry of that batch; each ``log`` is the whole of ``sources/<source>/``,
    also for the empty batch at ``start`` before it. The offsets of the two results alone do not make such a range:
    positions of file sources are entries of their own logs. ``interval`` is that of compactions of file logs.

    Raises Refused (``target-out-of-range``) where a source's end is before its start.
    """
    return {
        source: _files_between(source, position.base, end[source].base, interval)
        if kind_of(position.base.end, {}).kind == Files.kind
        else _offsets_between(source, position.base, end[source].base)
        for source, position in start.items()
    }


def _files_between(source: str, start: EmptyBase, end: EmptyBase, interval: int) -> EmptyBase:
    before, after = _files_of(start), _files_of(end)
    _refuse_backward(source, [path for path in before if path not in after])
    new = [file for path, file in after.items() if path not in before]
    if not new:
        return start
    entry = (_FILES.cut_entry(start.end) or 0) + 1
    lines: dict[int, list[str]] = {}
    for file in [*before.values(), *(replace(file, log_offset=entry) for file in new)]:
        lines.setdefault(file.log_offset, []).append(render_source_file(file))
    log = lay_out(lines, entry, interval)
    return EmptyBase(f'{{"logOffset":{entry}}}', {name: encoded(content) for name, content in log.items()})


def _files_of(base: EmptyBase) -> Mapping[str, SourceFile]:
    # Compacted entries repeat the files of others.
    return {file.path: file for content in base.log.values() for file in parse_file_source_log(content)}


def _offsets_between(source: str, start: EmptyBase, end: EmptyBase) -> EmptyBase:
    before, after = positions_of(start.end), positions_of(end.end)
    _refuse_backward(
        source, [f"{topic}-{one}" for (topic, one), at in before.items() if after.get((topic, one), at) < at]
    )
    # Of Kafka the log holds where the first batch starts.
    return EmptyBase(end.end, start.log)


def _refuse_backward(source: str, found: Sequence[str]) -> None:
    if found:
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        raise out_of_range(
            f"source {source}",
            "the range ends before it starts",
            found=", ".join(found[:SHOWN]) + more,
            hint="give --to a target that is not before that of --from",
        )
