"""``offsets/N``: each source's end of batch N, written before the batch runs (``OffsetSeqLog``).

Version 1 (all releases) names sources by position; version 2 (4.2 and later) writes ``<source id>:<offset>``.
"""

from __future__ import annotations

import re

from slackwater.core.checkpoint import OffsetEntry, OffsetMetadata, SourceOffset
from slackwater.core.errors import FormatError
from slackwater.core.units import counted
from slackwater.formats.text_log import integer_field, parse_json, parse_object, render_json, shown, split_log

NEWEST_VERSION = 2
_WATERMARK = re.compile(r'v[12]\n\{"batchWatermarkMs":([0-9]{1,18}),')
_NO_OFFSET = "-"
_BY_NAME = 2
_OWN_FIELDS = frozenset({"batchWatermarkMs", "batchTimestampMs", "conf"})


def parse_offset_entry(data: bytes) -> OffsetEntry:
    """Offsets stay Spark's strings; a string that starts like JSON must be JSON. Raises ``FormatError``."""
    version, lines = split_log(data, newest=NEWEST_VERSION)
    if len(lines) < 2 or not all(lines[1:]):  # noqa: PLR2004  (the metadata line and at least one source)
        raise FormatError(
            "torn", "the entry has no offsets", expected="a line for each source", found=counted(len(lines), "line")
        )
    # Continuous processing leaves this line empty.
    metadata = _parse_metadata(lines[0]) if lines[0].strip() else None
    if version == _BY_NAME:
        return OffsetEntry(version, metadata, tuple(_parse_named(line) for line in lines[1:]))
    offsets = tuple(SourceOffset(str(index), _checked(line)) for index, line in enumerate(lines[1:]))
    return OffsetEntry(version, metadata, offsets)


def planned_watermark_ms(text: str) -> int:
    """The watermark, 0 for none. The rest is skipped if fields are in Spark's order."""
    match = _WATERMARK.match(text)
    return int(match[1]) if match is not None else parse_offset_entry(text.encode()).watermark_ms


def render_offset_entry(entry: OffsetEntry) -> bytes:
    """The entry, byte for byte as Spark writes it."""
    named = entry.version == _BY_NAME
    lines = [f"v{entry.version}", _render_metadata(entry.metadata) if entry.metadata else ""]
    for offset in entry.offsets:
        text = _NO_OFFSET if offset.text is None else offset.text
        lines.append(f"{offset.source}:{text}" if named else text)
    return "\n".join(lines).encode()


def _parse_metadata(line: str) -> OffsetMetadata:
    what = "batch metadata"
    record = parse_object(line, what)
    conf = record.get("conf", {})
    if not isinstance(conf, dict) or not all(isinstance(value, str) for value in conf.values()):
        raise FormatError("foreign", "the pinned settings are not strings", expected='"conf":{...}', found=shown(line))
    return OffsetMetadata(
        batch_watermark_ms=integer_field(record, "batchWatermarkMs", what, 0),
        batch_timestamp_ms=integer_field(record, "batchTimestampMs", what, 0),
        conf=conf,
        # Fields of newer releases are kept, so that an entry that is changed and written again does not lose them.
        extra={name: value for name, value in record.items() if name not in _OWN_FIELDS},
    )


def _render_metadata(metadata: OffsetMetadata) -> str:
    return render_json(
        {
            "batchWatermarkMs": metadata.batch_watermark_ms,
            "batchTimestampMs": metadata.batch_timestamp_ms,
            "conf": dict(metadata.conf),
            **metadata.extra,
        }
    )


def _parse_named(line: str) -> SourceOffset:
    source, colon, text = line.partition(":")
    # Without its name a line would be split at the first colon of the JSON.
    if not source or not colon or not text or source[0] == "{":
        raise FormatError("torn", "a line of a named source is cut", expected="<source>:<offset>", found=shown(line))
    return SourceOffset(source, _checked(text))


def _checked(text: str) -> str | None:
    """Unknown offsets are kept, but malformed JSON has been cut."""
    if text == _NO_OFFSET:
        return None
    if text[0] in "{[":
        parse_json(text, "an offset")
    return text
