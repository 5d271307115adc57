"""Positions of file sources: which of the files that are there now count as read.

The files are those that Spark's own source lists, in the form of its log: options, patterns, hidden files, manifests
and the encoding of names are Spark's.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, assert_never

from slackwater.errors import EnvironmentMissing, UsageError
from slackwater.formats.compactible import lay_out
from slackwater.formats.file_source_log import parse_file_source_log, render_source_file
from slackwater.model.checkpoint_logs import SourceFile
from slackwater.model.targets import AtTime, Earliest, FromFile, Latest, Shift, SourceTarget
from slackwater.runtime.failures import reason_of, spark_errors
from slackwater.runtime.source_seen import Position, SourceSeen, out_of_range
from slackwater.sources.contract import EmptyBase, SourceRange
from slackwater.sources.files import NO_FILES, Files
from slackwater.sources.opaque import encoded
from slackwater.sources.registry import kind_of

SHOWN = 3
OFFSET_EXAMPLE = '{"logOffset": 5}'
_FILES = Files()
_READ, _LAST = 0, 1


def file_position(source: SourceSeen, target: SourceTarget, given: str | None) -> Position:
    """The position of a file source.

    ``earliest``: no file counts as read; ``latest``: all that are there now; a time: those with an older modification
    time; a shift back: all but the newest recorded ones, in the order in which they were read; a shift forward: the
    recorded ones and the next unread ones, in the order in which Spark would read them; ``given``: those up to that
    entry of the recorded log.
    """
    present = _present(source)
    match target:
        case Earliest():
            read: Sequence[SourceFile] = ()
        case Latest():
            read = present
        case AtTime():
            read = [file for file in present if file.timestamp_ms < target.time_ms]
        case Shift():
            read = _shifted(source, present, target.count)
        case FromFile():
            read = _recorded_until(source, present, given)
        case _:
            assert_never(target)
    return source.at(_base(source, read), _change(source, present, read))


def _present(source: SourceSeen) -> tuple[SourceFile, ...]:
    """The files that the source would read from the beginning, in that order."""
    jvm: Any = source.frame.sparkSession.sparkContext._jvm
    unlimited = jvm.org.apache.spark.sql.connector.read.streaming.ReadLimit.allAvailable()
    with tempfile.TemporaryDirectory() as folder:
        try:
            # A source of its own, with an empty log in which it records all that it finds as read.
            lister = source.relation.dataSource().createSource(f"file://{folder}/log")
            try:
                lister.latestOffset(None, unlimited)
            finally:
                lister.stop()
        except spark_errors() as error:
            raise EnvironmentMissing(
                "store-unreachable",
                f"The files of a source cannot be listed: {reason_of(error)}",
                where=source.where,
                hint="check the path and the options of the source",
            ) from error
        return tuple(
            file
            for entry in sorted(Path(folder).glob("log/[0-9]*"))
            for file in parse_file_source_log(entry.read_bytes())
        )


def _base(source: SourceSeen, read: Iterable[SourceFile]) -> EmptyBase:
    lines = [render_source_file(replace(file, log_offset=_READ)) for file in read]
    if not lines:
        return EmptyBase(NO_FILES)
    # With cleanSource, Spark deletes or archives the files of the newest entry when the next batch starts. Files that
    # only count as read must stay: the newest entry is empty.
    log = lay_out({_READ: lines, _LAST: []}, _LAST, source.interval)
    return EmptyBase(f'{{"logOffset":{_LAST}}}', {name: encoded(content) for name, content in log.items()})


def _recorded(source: SourceSeen) -> tuple[SourceFile, ...] | None:
    """The files that the source has read, oldest first; ``None`` where they are not all recorded."""
    span = SourceRange(source.name, None, source.current, source.log)
    return None if _FILES.unrecorded(span) else _FILES.files(span)


def _known(source: SourceSeen) -> tuple[SourceFile, ...]:
    recorded = _recorded(source)
    if recorded is None:
        raise source.unrecorded(_FILES.unrecorded(SourceRange(source.name, None, source.current, source.log)))
    return recorded


def _shifted(source: SourceSeen, present: Sequence[SourceFile], count: int) -> Sequence[SourceFile]:
    recorded = _known(source)
    seen = {file.path for file in recorded}
    unread = [file for file in present if file.path not in seen]
    if not -len(recorded) <= count <= len(unread):
        raise out_of_range(
            source.where,
            "it does not have as many files",
            expected=f"shift:-{len(recorded)} to shift:+{len(unread)}",
            found=f"shift:{count:+}",
        )
    if count >= 0:
        return [*recorded, *unread[:count]]
    read = recorded[:count]
    _check_present(source, present, recorded[count:])
    return read


def _recorded_until(source: SourceSeen, present: Sequence[SourceFile], given: str | None) -> Sequence[SourceFile]:
    recorded = _known(source)
    newest = max((file.log_offset for file in recorded), default=-1)
    entry = _entry(source, given)
    if entry > newest:
        raise out_of_range(
            source.where,
            "its own log has no such entry",
            expected=f"-1 to {newest}",
            found=str(entry),
            hint="-1 is before the first file; files that no batch has read have no entry: use time:... or latest",
        )
    _check_present(source, present, [file for file in recorded if file.log_offset > entry])
    return [file for file in recorded if file.log_offset <= entry]


def _entry(source: SourceSeen, given: str | None) -> int:
    if given is None or kind_of(given, {}).kind != Files.kind:
        raise UsageError(
            "target",
            "This is not the offset of a file source",
            where=source.where,
            expected=OFFSET_EXAMPLE,
            found=str(given)[:60],
            hint="logOffset is the newest entry of the source's own log that counts as read, -1 for none",
        )
    return _FILES.cut_entry(given) or 0


def _check_present(source: SourceSeen, present: Iterable[SourceFile], again: Iterable[SourceFile]) -> None:
    there = {file.path for file in present}
    missing = [file.path for file in again if file.path not in there]
    if missing:
        more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
        raise out_of_range(
            source.where,
            "files that are to be read again no longer exist",
            found=", ".join(missing[:SHOWN]) + more,
            hint="restore them, or use time:... or earliest, which read again what is left",
        )


def _change(source: SourceSeen, present: Sequence[SourceFile], read: Sequence[SourceFile]) -> str:
    recorded, after = _recorded(source), {file.path for file in read}
    there = {file.path for file in present}
    if recorded is None:
        return f"an unknown number of files read -> {len(after)}; {len(there - after)} are to be read"
    before = {file.path for file in recorded}
    parts = [
        f"{count} {what}"
        for count, what in (
            (len((before - after) & there), "are to be read again"),
            (len(after - before), "are skipped"),
            (len(there - after - before), "are to be read for the first time"),
            (len(before - after - there), "no longer exist"),
        )
        if count
    ]
    return "; ".join([f"{len(before)} files read -> {len(after)}", *parts])
