"""``metadata``: ``{"id":"<uuid>"}``, the id of the query over all its runs (``StreamMetadata``). No version line."""

from __future__ import annotations

from slackwater.errors import FormatError
from slackwater.formats.text_log import decode_text, parse_object, render_json, text_field


def parse_query_metadata(data: bytes) -> str:
    """The query id, verbatim. Raises ``FormatError``."""
    if not data:
        raise FormatError("empty", "the file has no bytes", expected='{"id":...}', found="0 bytes")
    return text_field(parse_object(decode_text(data), "metadata"), "id", "metadata")


def render_query_metadata(query_id: str) -> bytes:
    """The file that keeps ``query_id`` for the next run."""
    return render_json({"id": query_id}).encode()
