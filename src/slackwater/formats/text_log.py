"""The driver's text logs: ``vN``, then lines (``HDFSMetadataLog``).

Spark writes no line break at the end, and accepts a line break that an editor adds (``Source.getLines``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from slackwater.core.errors import FormatError
from slackwater.core.masking import brief

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
