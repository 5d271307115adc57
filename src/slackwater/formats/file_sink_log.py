"""``N`` and ``N.compact`` of the file sink's manifest: the data files that count (``FileStreamSinkLog``)."""

from __future__ import annotations

from slackwater.errors import FormatError
from slackwater.formats.text_log import integer_field, parse_object, shown, split_log, text_field
from slackwater.model.checkpoint_logs import SinkFile

FOLDER = "_spark_metadata"
"""The folder of the log below the output directory. Spelled nowhere else."""
NEWEST_VERSION = 1
_WHAT = "a sink entry"


def parse_file_sink_log(data: bytes) -> tuple[SinkFile, ...]:
    """The files of one log file, none for a batch without output. Raises ``FormatError``."""
    _, lines = split_log(data, newest=NEWEST_VERSION)
    return tuple(parse_sink_file(line) for line in lines if line.strip())


def parse_sink_file(line: str) -> SinkFile:
    """One line of the log. ``path`` is an absolute, percent-encoded URI. Raises ``FormatError``."""
    record = parse_object(line, _WHAT)
    is_dir = record.get("isDir", False)
    if not isinstance(is_dir, bool):
        raise FormatError("foreign", f"{_WHAT}: isDir is not a boolean", expected="true or false", found=shown(line))
    return SinkFile(
        path=text_field(record, "path", _WHAT),
        size=integer_field(record, "size", _WHAT),
        modification_time_ms=integer_field(record, "modificationTime", _WHAT),
        action=text_field(record, "action", _WHAT, "add"),
        is_dir=is_dir,
        block_replication=integer_field(record, "blockReplication", _WHAT, 1),
        block_size=integer_field(record, "blockSize", _WHAT, 0),
    )
