"""Whether files are still those that were read: by their times and sizes, as contents are not recorded."""

from __future__ import annotations

import re
from collections.abc import Iterable

from slackwater.core.checkpoint import SourceFile
from slackwater.sources.common.contract import Reach, Replaced

MS_IN_S = 1000
UNIQUE_NAME = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}[^/]*$")


def sizes_as_read(files: Iterable[SourceFile], reach: Reach) -> dict[str, int]:
    """The bytes of the files by their paths, without those that were written after they had been read."""
    sizes = {}
    for file in files:
        found_ms, size = reach.modified_ms(file.path), reach.size(file.path)
        if found_ms is not None and size is not None and _same_time(file.timestamp_ms, found_ms):
            sizes[file.path] = size
    return sizes


def replaced_file(file: SourceFile, read_bytes: int | None, reach: Reach) -> Replaced | None:
    """A file whose time or size is another than when it was read. Owners, modes and links do not matter.

    Its content is not recorded: with another time it may be another, whatever its size. A name with a UUID, as Spark
    gives it, stands for one content, which a copy back from a backup does not change.
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
    """Equal, or within the second of a store that has no milliseconds."""
    whole_seconds = one_ms % MS_IN_S == 0 or other_ms % MS_IN_S == 0
    return one_ms == other_ms or (whole_seconds and one_ms // MS_IN_S == other_ms // MS_IN_S)
