"""Which files a file source has taken up to a batch, read from its checkpoint's own logs."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote, urlsplit

from slackwater.core.checkpoint import OffsetEntry
from slackwater.formats.compactible import parse_file_source_log
from slackwater.formats.text_log import parse_offset_entry


def planned(checkpoint: Path, batch: int) -> OffsetEntry:
    """``offsets/N``."""
    return parse_offset_entry((checkpoint / "offsets" / str(batch)).read_bytes())


def position(checkpoint: Path, batch: int) -> int:
    """The last entry of the first source's log that the batch takes, counted from 0; -1 before the first batch."""
    if batch < 0:
        return -1
    return int(json.loads(planned(checkpoint, batch).offsets[0].text or "{}")["logOffset"])


def files_taken(checkpoint: Path, after: int, up_to: int) -> list[Path]:
    """The files that the batches after ``after``, up to and including ``up_to``, took from the first source."""
    first, last = position(checkpoint, after), position(checkpoint, up_to)
    logs = [path for path in (checkpoint / "sources" / "0").iterdir() if not path.name.startswith(".")]
    entries = (entry for path in logs for entry in parse_file_source_log(path.read_bytes()))
    taken = {entry.path for entry in entries if first < entry.log_offset <= last}
    return sorted(Path(unquote(urlsplit(path).path)) for path in taken)


def rows_in(files: list[Path]) -> int:
    """The number of rows in Parquet files, from their footers."""
    from pyarrow import parquet  # noqa: PLC0415 - costs more than the whole start of a command

    return sum(int(parquet.read_metadata(file).num_rows) for file in files)
