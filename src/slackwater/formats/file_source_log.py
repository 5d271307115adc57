"""``sources/<i>/M`` and ``M.compact``: which files a file source took in log offset M (``FileStreamSourceLog``)."""

from __future__ import annotations

from slackwater.formats.text_log import integer_field, parse_object, render_json, split_log, text_field
from slackwater.model.checkpoint_logs import SourceFile

NEWEST_VERSION = 1
_WHAT = "a file entry"


def parse_file_source_log(data: bytes) -> tuple[SourceFile, ...]:
    """The files of one log file; a ``.compact`` holds those of earlier log offsets too. Raises ``FormatError``."""
    _, lines = split_log(data, newest=NEWEST_VERSION)
    return tuple(parse_source_file(line) for line in lines if line.strip())


def parse_source_file(line: str) -> SourceFile:
    """One line of the log. ``path`` is percent-encoded. Raises ``FormatError``."""
    record = parse_object(line, _WHAT)
    return SourceFile(
        text_field(record, "path", _WHAT),
        integer_field(record, "timestamp", _WHAT),
        integer_field(record, "batchId", _WHAT),
    )


def render_source_file(file: SourceFile) -> str:
    """The line of the log that lists a file, as Spark writes it."""
    return render_json({"path": file.path, "timestamp": file.timestamp_ms, "batchId": file.log_offset})
