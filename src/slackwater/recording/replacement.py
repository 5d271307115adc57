"""When an entry that is recorded may be replaced by the present content of a file.

The ledger's copy is evidence of what Spark ran. A torn file, or one that was restored or edited, must not take its
place: an entry is replaced only by one that parses and is newer, and not while the sink shows the batch that the
recorded entry describes. What is replaced is kept beside it.
"""

from __future__ import annotations

from collections.abc import Callable

from slackwater.errors import FormatError
from slackwater.formats.commit_log import parse_commit_entry
from slackwater.formats.file_source_log import parse_file_source_log
from slackwater.formats.kafka_initial_offsets import parse_initial_offsets
from slackwater.formats.offset_log import parse_offset_entry
from slackwater.formats.text_log import parse_object, parse_query_metadata
from slackwater.ledger.lineage import METADATA, SINK, SOURCES
from slackwater.sinks.contract import SinkLog

KAFKA_MARK = b"\0"
LISTS_FILES = b'{"path":'
_RECORD = "{"

_PARSERS: dict[str, Callable[[bytes], object]] = {
    METADATA: parse_query_metadata,
    "offsets": parse_offset_entry,
    "commits": parse_commit_entry,
}


def parses(log: str, text: str, sink: SinkLog | None) -> bool:
    """Whether a string is an entry of its log. Of a log of an unknown source any string is taken."""
    data = text.encode("utf-8", "surrogateescape")
    parser = _PARSERS.get(log)
    if log == SINK and sink is not None:
        parser = sink.parse
    elif log.startswith(SOURCES):
        parser = _source_parser(data)
    if parser is None:
        return True
    try:
        parser(data)
    except FormatError:
        return False
    return True


def may_replace(log: str, recorded: str, found: str, *, shown: bool) -> bool:
    """Whether ``found`` may take the place of the recorded entry; both parse, and they differ.

    ``shown``: the sink still shows the batch that the recorded entry describes.
    """
    if log != "offsets":
        # Cut after its version line, a file is still an entry: that of a batch without files, or of an old release.
        return _RECORD not in recorded or _RECORD in found
    return not shown and _planned_ms(found) > _planned_ms(recorded)


def _source_parser(data: bytes) -> Callable[[bytes], object] | None:
    if data.startswith(KAFKA_MARK):
        return parse_initial_offsets
    return parse_file_source_log if LISTS_FILES in data else _parse_records


def _parse_records(data: bytes) -> None:
    """Lines of an unknown source that start like a JSON object must be one: a line that was cut is none."""
    for line in data.decode("utf-8", "surrogateescape").split("\n"):
        if line.startswith(_RECORD):
            parse_object(line, "an entry of a source's log")


def _planned_ms(text: str) -> int:
    metadata = parse_offset_entry(text.encode("utf-8", "surrogateescape")).metadata
    return metadata.batch_timestamp_ms if metadata is not None else 0
