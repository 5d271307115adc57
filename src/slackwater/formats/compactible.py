"""Compacted logs: file sources', and the file sink's manifest (``CompactibleFileStreamLog``).

With interval k every k-th entry is ``N.compact`` *instead of* ``N`` ((N+1) divisible by k); it holds all so far. Spark
derives the interval from names.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from slackwater.core.checkpoint import SinkFile, SourceFile
from slackwater.core.errors import FormatError
from slackwater.formats.text_log import integer_field, parse_object, render_json, shown, split_log, text_field

DEFAULT_INTERVAL = 10
"""``spark.sql.streaming.fileSource.log.compactInterval`` and its sink twin."""
_SUFFIX = ".compact"


def parse_entry_name(name: str) -> tuple[int, bool] | None:
    """``(entry, whether compacted)``; ``None`` for another name."""
    stem = name.removesuffix(_SUFFIX)
    return (int(stem), stem != name) if stem.isascii() and stem.isdigit() else None


def entries_of(names: Iterable[str]) -> dict[int, str]:
    """The entries' names by number. Spark reads the compacted entry if both exist."""
    found: dict[int, str] = {}
    for name in names:
        parsed = parse_entry_name(name)
        if parsed is not None and (parsed[1] or parsed[0] not in found):
            found[parsed[0]] = name
    return found


def names_read(names: Iterable[str]) -> list[str]:
    """The entries that Spark reads, oldest first: the newest compacted entry and later entries."""
    found = entries_of(names)
    compacted = max((entry for entry, name in found.items() if name.endswith(_SUFFIX)), default=-1)
    return [name for entry, name in sorted(found.items()) if entry >= compacted]


def derive_interval(names: Iterable[str], default: int = DEFAULT_INTERVAL) -> int:
    """The interval Spark will use for these names and the setting ``default``.

    Two or more compacted entries: the newest two's distance. A single entry: a divisor of its count of entries. None:
    the setting.
    """
    parsed = (parse_entry_name(name) for name in names)
    compacted = sorted((found[0] for found in parsed if found and found[1]), reverse=True)
    if len(compacted) > 1:
        return compacted[0] - compacted[1]
    if not compacted:
        return default
    # `CompactibleFileStreamLog.deriveCompactInterval`: with another result other entries would count as compacted than
    # in Spark.
    entries = compacted[0] + 1
    if default >= entries // 2:
        return entries
    return next((interval for interval in range(default, entries // 2 + 1) if entries % interval == 0), entries)


def lay_out(entries: Mapping[int, Sequence[str]], last: int, interval: int) -> dict[str, str]:
    """Files (name -> text) of a log with exactly the entries 0 to ``last``, as Spark reads it.

    ``entries`` are each entry's own lines. Two compactions stay two, so that Spark derives ``interval``. With a single
    compaction, Spark may derive a divisor, which reads the same entries.
    """
    newest = (last + 1) // interval * interval - 1
    files: dict[str, str] = {}
    for compacted in (newest - interval, newest):
        if compacted >= 0:
            lines = [line for entry in range(compacted + 1) for line in entries.get(entry, ())]
            files[f"{compacted}{_SUFFIX}"] = _text(lines)
    for entry in range(newest + 1, last + 1):
        files[str(entry)] = _text(entries.get(entry, ()))
    return files


def _text(lines: Sequence[str]) -> str:
    return "\n".join(["v1", *lines])


SINK_LOG = "_spark_metadata"
"""The log's folder in the output directory. Spelled nowhere else."""
NEWEST_VERSION = 1
_SINK_ENTRY = "a sink entry"

_TEXT, _NUMBER = r'"([^"\\\x00-\x1f]*)"', "(0|[1-9][0-9]{0,17})"
_SOURCE_LINE = re.compile(rf'\{{"path":{_TEXT},"timestamp":{_NUMBER},"batchId":{_NUMBER}\}}')
"""A line as Spark writes it; a log can have a million. Others are read as JSON, which takes longer."""
_SINK_LINE = re.compile(
    rf'\{{"path":{_TEXT},"size":{_NUMBER},"isDir":(true|false),"modificationTime":{_NUMBER},'
    rf'"blockReplication":{_NUMBER},"blockSize":{_NUMBER},"action":{_TEXT}\}}'
)


def parse_file_sink_log(data: bytes) -> tuple[SinkFile, ...]:
    """The files, none for a batch without output. Raises ``FormatError``."""
    _, lines = split_log(data, newest=NEWEST_VERSION)
    return tuple(parse_sink_file(line) for line in lines if line.strip())


def parse_sink_file(line: str) -> SinkFile:
    """``path`` is an absolute, percent-encoded URI. Raises ``FormatError``."""
    match = _SINK_LINE.fullmatch(line)
    if match is not None:
        path, size, is_folder, time, replication, block, action = match.groups()
        return SinkFile(path, int(size), int(time), action, is_folder == "true", int(replication), int(block))
    record = parse_object(line, _SINK_ENTRY)
    is_dir = record.get("isDir", False)
    if not isinstance(is_dir, bool):
        raise FormatError(
            "foreign", f"{_SINK_ENTRY}: isDir is not a boolean", expected="true or false", found=shown(line)
        )
    return SinkFile(
        path=text_field(record, "path", _SINK_ENTRY),
        size=integer_field(record, "size", _SINK_ENTRY),
        modification_time_ms=integer_field(record, "modificationTime", _SINK_ENTRY),
        action=text_field(record, "action", _SINK_ENTRY, "add"),
        is_dir=is_dir,
        block_replication=integer_field(record, "blockReplication", _SINK_ENTRY, 1),
        block_size=integer_field(record, "blockSize", _SINK_ENTRY, 0),
    )


def parse_file_source_log(data: bytes) -> tuple[SourceFile, ...]:
    """A ``.compact`` has the files of earlier log offsets too. Raises ``FormatError``."""
    _, lines = split_log(data, newest=NEWEST_VERSION)
    return tuple(parse_source_file(line) for line in lines if line.strip())


def parse_source_file(line: str) -> SourceFile:
    """``path`` is percent-encoded. Raises ``FormatError``."""
    match = _SOURCE_LINE.fullmatch(line)
    if match is not None:
        path, time, entry = match.groups()
        return SourceFile(path, int(time), int(entry))
    record = parse_object(line, "a file entry")
    return SourceFile(
        text_field(record, "path", "a file entry"),
        integer_field(record, "timestamp", "a file entry"),
        integer_field(record, "batchId", "a file entry"),
    )


def render_source_file(file: SourceFile) -> str:
    return render_json({"path": file.path, "timestamp": file.timestamp_ms, "batchId": file.log_offset})
