from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from urllib.parse import unquote, urlsplit

from slackwater.core.errors import Refused
from slackwater.sources.common.contract import Replaced

MS_IN_S = 1000


def refuse_replaced(stream: str, replaced: Sequence[Replaced], unchanged: str) -> None:
    """Raises Refused (``source-files-replaced``)."""
    if not replaced:
        return
    first = replaced[0]
    more = f", and {len(replaced) - 1} more files" if len(replaced) > 1 else ""
    raise Refused(
        "source-files-replaced",
        f"A source file was replaced or changed after stream {stream} had read it{more}: its rows may be others",
        where=first.path,
        expected=_described(first.read_ms, first.read_bytes),
        found=_described(first.found_ms, first.found_bytes),
        hint=_hint(first, unchanged),
    )


def _described(written_ms: int, size: int | None) -> str:
    return f"written {_time(written_ms)}" + (f", {size} bytes" if size is not None else "")


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / MS_IN_S, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _hint(file: Replaced, unchanged: str) -> str:
    parts = urlsplit(file.path)
    if parts.scheme not in {"", "file"}:
        return f"restore the object as it was, or reset the stream to read everything as it is now; {unchanged}"
    restore = (
        "restore the file with its time, as cp -p does, or reset the stream to read everything as it is now; "
        f"{unchanged}"
    )
    if file.read_bytes != file.found_bytes:
        return restore
    path = unquote(parts.path) if parts.scheme else file.path
    touch = f"touch -d {_time(file.read_ms)} {shlex.quote(path)}"
    return f"{restore}\nif only its time was changed and its content was not, set it back: {touch}"
