"""``sources/<i>/0`` of a Kafka source: where its first batch started, so that ``latest`` stays what it was.

A zero byte precedes the version, which kept Spark 2.1.0 from failing on the file (SPARK-19517).
"""

from __future__ import annotations

from slackwater.errors import FormatError
from slackwater.formats.text_log import parse_object, shown, split_log

NEWEST_VERSION = 1
_LEADING = b"\0"


def parse_initial_offsets(data: bytes) -> str:
    """``{topic: {partition: offset}}`` as Spark's string. Raises ``FormatError``."""
    _, lines = split_log(data.removeprefix(_LEADING), newest=NEWEST_VERSION)
    text = "\n".join(lines).strip()
    record = parse_object(text, "the initial offsets")
    if not all(isinstance(partitions, dict) for partitions in record.values()):
        raise FormatError("foreign", "not offsets by topic", expected="{topic: {partition: offset}}", found=shown(text))
    return text


def render_initial_offsets(text: str) -> bytes:
    """The file that holds these initial offsets."""
    return _LEADING + b"v1\n" + text.encode()
