"""``commits/N``: batch N is done (``CommitLog``). Version 2 adds ids of state files, version 3 sinks."""

from __future__ import annotations

import re
from typing import cast

from slackwater.core.checkpoint import CommitEntry
from slackwater.core.errors import FormatError
from slackwater.formats.text_log import integer_field, parse_object, render_json, shown, split_log

NEWEST_VERSION = 3
_WATERMARK = re.compile(r'v[123]\n\{"nextBatchWatermarkMs":([0-9]{1,18})[,}]')


def parse_commit_entry(data: bytes) -> CommitEntry:
    """Very old logs lack the second line or hold ``{}``: the watermark is then 0. Raises ``FormatError``."""
    version, lines = split_log(data, newest=NEWEST_VERSION)
    line = lines[0].strip() if lines else ""
    record = parse_object(line, "the commit") if line else {}
    return CommitEntry(
        version,
        integer_field(record, "nextBatchWatermarkMs", "the commit", 0),
        _parse_state_ids(record.get("stateUniqueIds")),
        _parse_sinks(record.get("sinkMetadataMap")),
    )


def next_watermark_ms(text: str) -> int:
    """The watermark, 0 for none. The rest is skipped if fields are in Spark's order."""
    match = _WATERMARK.match(text)
    return int(match[1]) if match is not None else parse_commit_entry(text.encode()).next_batch_watermark_ms


def render_commit_entry(entry: CommitEntry) -> bytes:
    """The entry, byte for byte as Spark writes it."""
    record: dict[str, object] = {"nextBatchWatermarkMs": entry.next_batch_watermark_ms}
    if entry.state_unique_ids is not None:
        record["stateUniqueIds"] = dict(entry.state_unique_ids)
    if entry.sink_metadata is not None:
        record["sinkMetadataMap"] = dict(entry.sink_metadata)
    return f"v{entry.version}\n{render_json(record)}".encode()


def _parse_state_ids(value: object) -> dict[str, list[list[str]]] | None:
    if value is None:
        return None
    if not isinstance(value, dict) or not all(_is_id_table(partitions) for partitions in value.values()):
        raise FormatError(
            "foreign", "the state ids have another shape", expected="{operator: [[id]]}", found=shown(repr(value))
        )
    return cast("dict[str, list[list[str]]]", value)


def _is_id_table(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(stores, list) and all(isinstance(identity, str) for identity in stores) for stores in value
    )


def _parse_sinks(value: object) -> dict[str, object] | None:
    if value is None or isinstance(value, dict):
        return value
    raise FormatError("foreign", "the sinks are not an object", expected="{name: {...}}", found=shown(repr(value)))
