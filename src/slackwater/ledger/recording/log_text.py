"""The content of one log entry: whether it is complete, and which of its lines belong to this entry alone.

Facts: docs/format.md, sections 3, 6, 7, 8. Every tenth entry of a file source's or file sink's log is ``N.compact``
and repeats all earlier ones; kept as it is, the ledger would grow with the square of the files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from slackwater.core.errors import FormatError
from slackwater.formats.text_log import parse_object

_VERSION_LINE = re.compile(r"v[0-9]+(\n|$)")
_OWN_MOST = 1000
_KAFKA_MARK = "\0"
"""Kafka starts the file of its initial offsets with this byte, so that the readers of Spark 2.1 fail on it."""


def decode(data: bytes) -> str:
    """The content of a file as a string; bytes that are not UTF-8 survive the way into the ledger and back."""
    return data.decode("utf-8", "surrogateescape")


def is_whole(log: str, text: str) -> bool:
    """Whether a string can be an entry of a log; a file that is not is read again later."""
    if log == "metadata":
        return text.startswith("{") and text.endswith("}")
    return _VERSION_LINE.match(text.removeprefix(_KAFKA_MARK)) is not None


def split_source_compact(text: str, entry: int) -> dict[int, str]:
    """A compacted entry of a source's log as one string for each entry in it: its lines name their entry."""
    version, *lines = text.split("\n")
    texts = {entry: [version]}
    for line in lines:
        texts.setdefault(_log_offset(line, entry), [version]).append(line)
    return {number: "\n".join(parts) for number, parts in texts.items()}


def _log_offset(line: str, entry: int) -> int:
    try:
        return _offset(parse_object(line, "a file entry")["batchId"], entry)
    except (FormatError, KeyError):
        # A line that cannot be parsed is kept where it was found.
        return entry


def _offset(value: object, entry: int) -> int:
    """A log offset that is an integer and not newer than the entry that lists it; else the entry itself."""
    return value if isinstance(value, int) and 0 <= value <= entry else entry


def after_recorded(text: str, earlier: Iterable[str]) -> str | None:
    """A compacted entry of a sink without its first lines, where these are those of all earlier entries, oldest first.

    So Spark writes it, and then nothing in these lines has to be parsed again. ``None``: it has other lines, or one of
    those that remain may name a file of an earlier entry.
    """
    version = text.partition("\n")[0]
    recorded = "\n".join([version, *(lines for _, _, lines in (one.partition("\n") for one in earlier) if lines)])
    rest = text[len(recorded) :]
    own = rest.split("\n")[1:]
    if not text.startswith(recorded) or not rest.startswith("\n" if rest else ""):
        return None
    if len(own) > _OWN_MOST or any(_file(line)[0] in recorded for line in own):
        return None
    return version + rest


def strip_sink_compact(text: str, earlier: Iterable[str]) -> str:
    """A compacted entry of the sink's log without the files that earlier entries list already.

    Its lines do not name their batch. Where earlier entries are unknown, their files stay in this one: it then
    represents all batches up to its own.
    """
    known = {_file(line) for text in earlier for line in text.split("\n")[1:]}
    version, *lines = text.split("\n")
    return "\n".join([version, *(line for line in lines if _file(line) not in known)])


def _file(line: str) -> tuple[str, str]:
    # Not the whole line: a newer Spark may rewrite an older one's line with other fields.
    try:
        fields = json.loads(line)
        return str(fields["path"]), str(fields.get("action"))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return line, ""
