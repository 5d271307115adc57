"""Checks by time and size whether files are unchanged since they were read; contents are not recorded."""

from __future__ import annotations

import re
from collections.abc import Iterable

from slackwater.core.checkpoint import SourceFile
from slackwater.sources.common.contract import Reach, Replaced

MS_IN_S = 1000
UNIQUE_NAME = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}[^/]*$")


def sizes_as_read(files: Iterable[SourceFile], reach: Reach) -> dict[str, int]:
    sizes = {}
    for file in files:
        found_ms, size = reach.modified_ms(file.path), reach.size(file.path)
        if found_ms is not None and size is not None and _same_time(file.timestamp_ms, found_ms):
            sizes[file.path] = size
    return sizes


def replaced_file(file: SourceFile, read_bytes: int | None, reach: Reach) -> Replaced | None:
    """The file if it was changed; owners, modes and links do not matter.

    A different time may mean different content of equal size. A name with a UUID, as Spark writes it, identifies the
    content: restoring a backup does not change it.
    """
    found_ms = reach.modified_ms(file.path)
    if found_ms is None:
        return None
    found_bytes = reach.size(file.path) if read_bytes is not None else None
    same_bytes = found_bytes == read_bytes
    same_time = _same_time(file.timestamp_ms, found_ms) or UNIQUE_NAME.search(file.path) is not None
    if same_time and same_bytes:
        return None
    return Replaced(file.path, file.timestamp_ms, found_ms, read_bytes, found_bytes)


def _same_time(one_ms: int, other_ms: int) -> bool:
    whole_seconds = one_ms % MS_IN_S == 0 or other_ms % MS_IN_S == 0
    return one_ms == other_ms or (whole_seconds and one_ms // MS_IN_S == other_ms // MS_IN_S)
