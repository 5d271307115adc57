"""When an entry that is recorded may be replaced by the present content of a file.

The ledger's copy is evidence of what Spark ran. A torn file, or one that was restored or edited, must not take its
place: an entry is replaced only by one that parses and is newer, and not while the sink shows the batch that the
recorded entry describes. What is replaced is kept beside it.
"""

from __future__ import annotations

from collections.abc import Callable

from slackwater.core.errors import FormatError
from slackwater.formats.commit_log import parse_commit_entry
from slackwater.formats.offset_log import parse_offset_entry
from slackwater.formats.text_log import parse_query_metadata, parse_records
from slackwater.ledger.lineage import METADATA, SINK, SOURCES
from slackwater.sinks.common.contract import SinkLog
from slackwater.sources import kind_of_entry

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
        parser = kind_of_entry(data).entry_parser(data) or parse_records
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


def _planned_ms(text: str) -> int:
    metadata = parse_offset_entry(text.encode("utf-8", "surrogateescape")).metadata
    return metadata.batch_timestamp_ms if metadata is not None else 0
