"""The driver's text logs: ``vN``, then lines (``HDFSMetadataLog``).

Spark writes no line break at the end, and accepts a line break that an editor adds (``Source.getLines``).
"""

import json
import re
from collections.abc import Callable
from typing import cast

from slackwater.core.checkpoint import CommitEntry, OffsetEntry, OffsetMetadata, SourceOffset
from slackwater.core.errors import FormatError
from slackwater.core.masking import brief
from slackwater.core.units import counted

_decode: Callable[[str], tuple[object, int]] = json.JSONDecoder().raw_decode
_VERSION_LINE = re.compile(r"v(\d{1,9})")
_SHOWN = 60
LEADING = "\0"
"""Precedes the version of an entry on which readers of Spark 2.1 shall fail: Kafka's initial offsets."""
_LONG = range(-(2**63), 2**63)
"""Spark keeps numbers of its logs in a Long."""


def split_log(data: bytes, *, newest: int) -> tuple[int, list[str]]:
    """The version and the lines after it. Raises ``FormatError``; ``too-new`` above ``newest``."""
    if not data:
        raise FormatError("empty", "the file has no bytes", expected="a version line", found="0 bytes")
    lines = decode_text(data).split("\n")
    if len(lines) > 1 and not lines[-1]:
        del lines[-1]
        lines[-1] = lines[-1].removesuffix("\r")
    match = _VERSION_LINE.fullmatch(lines[0].strip())
    if match is None:
        code = "torn" if lines[0] == "v" and len(lines) == 1 else "foreign"
        raise FormatError(code, "the file does not start with a version", expected="v1 ...", found=shown(lines[0]))
    version = int(match[1])
    if not 1 <= version <= newest:
        raise FormatError(
            "too-new", "the version is not one Spark 4.3 writes", expected=f"v1 to v{newest}", found=match[0]
        )
    return version, lines[1:]


def decode_text(data: bytes) -> str:
    """Raises ``FormatError`` (``foreign``)."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise FormatError(
            "foreign",
            "the file is not a text file",
            expected="UTF-8",
            found=f"byte {data[error.start]:#04x} at {error.start}",
        ) from error


def parse_query_metadata(data: bytes) -> str:
    """The verbatim query id in ``metadata``: ``{"id":"<uuid>"}`` without a version line. Raises ``FormatError``."""
    if not data:
        raise FormatError("empty", "the file has no bytes", expected='{"id":...}', found="0 bytes")
    return text_field(parse_object(decode_text(data), "metadata"), "id", "metadata")


def parse_object(text: str, what: str) -> dict[str, object]:
    """A JSON object. Raises ``FormatError``: ``torn`` if it starts like an object, else ``foreign``."""
    value = parse_json(text, what)
    if not isinstance(value, dict):
        raise FormatError("foreign", f"{what} is not a JSON object", expected="{...}", found=shown(text))
    return value


def json_value(text: str) -> object:
    """``json.loads`` in two thirds of its time without surrounding white space. Raises ``ValueError``."""
    try:
        value, end = _decode(text)
    except ValueError:
        value, end = None, -1
    return value if end == len(text) else json.loads(text)


def parse_json(text: str, what: str) -> object:
    """Raises ``FormatError``: ``torn`` if it starts like an object or list, else ``foreign``."""
    try:
        value = json_value(text)
    except (ValueError, RecursionError) as error:
        # RecursionError is what the parser of Python raises for brackets that are nested too deep.
        code = "torn" if text[:1] in {"{", "["} else "foreign"
        raise FormatError(code, f"{what} is not JSON", expected="JSON on one line", found=shown(text)) from error
    return value


def parse_records(data: bytes) -> None:
    """Raises FormatError for an unknown log's line that starts like a JSON object and was cut."""
    for line in data.decode("utf-8", "surrogateescape").split("\n"):
        if line.startswith("{"):
            parse_object(line, "an entry of a source's log")


def integer_field(record: dict[str, object], name: str, what: str, default: int | None = None) -> int:
    """A 64-bit integer; ``default`` if absent. Raises ``FormatError`` (``foreign``)."""
    value = record.get(name, default)
    # In Python a bool is an int, and `true` is no number in JSON.
    if not isinstance(value, int) or isinstance(value, bool):
        raise FormatError("foreign", f"{what}: {name} is not an integer", expected=name, found=shown(repr(value)))
    if value not in _LONG:
        raise FormatError(
            "foreign", f"{what}: {name} has more than 64 bits", expected="a 64-bit integer", found=shown(str(value))
        )
    return value


def text_field(record: dict[str, object], name: str, what: str, default: str | None = None) -> str:
    """A string; ``default`` if absent. Raises ``FormatError`` (``foreign``)."""
    value = record.get(name, default)
    if not isinstance(value, str):
        raise FormatError("foreign", f"{what}: {name} is not a string", expected=name, found=shown(repr(value)))
    return value


def render_json(value: object) -> str:
    """JSON as Spark writes it: no spaces, no escapes, keys in order."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def shown(text: str) -> str:
    return brief(text.replace("\n", "\\n"), _SHOWN)


_NEWEST_OFFSET_VERSION = 2
_WATERMARK = re.compile(r'v[12]\n\{"batchWatermarkMs":([0-9]{1,18}),')
_NO_OFFSET = "-"
_BY_NAME = 2
_OWN_FIELDS = frozenset({"batchWatermarkMs", "batchTimestampMs", "conf"})


def parse_offset_entry(data: bytes) -> OffsetEntry:
    """Offsets stay Spark's strings; a string that starts like JSON must be JSON. Raises ``FormatError``."""
    version, lines = split_log(data, newest=_NEWEST_OFFSET_VERSION)
    if len(lines) < 2 or not all(lines[1:]):  # noqa: PLR2004  (the metadata line and at least one source)
        raise FormatError(
            "torn", "the entry has no offsets", expected="a line for each source", found=counted(len(lines), "line")
        )
    # Continuous processing leaves this line empty.
    metadata = _parse_metadata(lines[0]) if lines[0].strip() else None
    offsets = []
    for index, line in enumerate(lines[1:]):
        source, text = str(index), line
        if version == _BY_NAME:
            source, _, text = line.partition(":")
            # Without its name a line would be split at the first colon of the JSON.
            if not source or not text or source[0] == "{":
                raise FormatError(
                    "torn", "a line of a named source is cut", expected="<source>:<offset>", found=shown(line)
                )
        offsets.append(SourceOffset(source, _checked(text)))
    return OffsetEntry(version, metadata, tuple(offsets))


def planned_watermark_ms(text: str) -> int:
    """The watermark, 0 for none. The rest is skipped if fields are in Spark's order."""
    match = _WATERMARK.match(text)
    return int(match[1]) if match is not None else parse_offset_entry(text.encode()).watermark_ms


def render_offset_entry(entry: OffsetEntry) -> bytes:
    """The entry, byte for byte as Spark writes it."""
    named = entry.version == _BY_NAME
    metadata = ""
    if entry.metadata:
        metadata = render_json(
            {
                "batchWatermarkMs": entry.metadata.batch_watermark_ms,
                "batchTimestampMs": entry.metadata.batch_timestamp_ms,
                "conf": dict(entry.metadata.conf),
                **entry.metadata.extra,
            }
        )
    lines = [f"v{entry.version}", metadata]
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


def _checked(text: str) -> str | None:
    """Unknown offsets are kept, but malformed JSON has been cut."""
    if text == _NO_OFFSET:
        return None
    if text[0] in "{[":
        parse_json(text, "an offset")
    return text


_NEWEST_COMMIT_VERSION = 3
_COMMIT_WATERMARK = re.compile(r'v[123]\n\{"nextBatchWatermarkMs":([0-9]{1,18})[,}]')


def parse_commit_entry(data: bytes) -> CommitEntry:
    """Very old logs lack the second line or hold ``{}``: the watermark is then 0. Raises ``FormatError``."""
    version, lines = split_log(data, newest=_NEWEST_COMMIT_VERSION)
    line = lines[0].strip() if lines else ""
    record = parse_object(line, "the commit") if line else {}
    watermark_ms = integer_field(record, "nextBatchWatermarkMs", "the commit", 0)
    state_ids, sinks = _parse_state_ids(record.get("stateUniqueIds")), record.get("sinkMetadataMap")
    if sinks is not None and not isinstance(sinks, dict):
        raise FormatError("foreign", "the sinks are not an object", expected="{name: {...}}", found=shown(repr(sinks)))
    return CommitEntry(version, watermark_ms, state_ids, sinks)


def next_watermark_ms(text: str) -> int:
    """The watermark, 0 for none. The rest is skipped if fields are in Spark's order."""
    match = _COMMIT_WATERMARK.match(text)
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
    tables = list(value.values()) if isinstance(value, dict) else [None]
    # The ids of a partition are a list, and an operator has a list of those.
    partitions = [table for each in tables for table in (each if isinstance(each, list) else [None])]
    if not all(isinstance(ids, list) and all(isinstance(one, str) for one in ids) for ids in partitions):
        raise FormatError(
            "foreign", "the state ids have a different shape", expected="{operator: [[id]]}", found=shown(repr(value))
        )
    return cast("dict[str, list[list[str]]]", value)
