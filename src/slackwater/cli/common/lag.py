"""How far a stream is behind its sources: rows as the newest batch reported them, and files that it has not read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from slackwater.core.errors import FormatError
from slackwater.core.records import BatchRecord, BatchSource
from slackwater.diagnose.checks.common.progress import lag_of, rows_ahead
from slackwater.ledger.ledger import Ledger
from slackwater.sources import kind_described
from slackwater.sources.common.contract import SourceRange, Uncounted

FILES_MAX = 10_000
"""Names in a source directory, and entries in its log, up to which they are compared: ``status`` must be quick."""


@dataclass(frozen=True, slots=True)
class Lag:
    """What the sources hold beyond a batch: rows, and files with their bytes; ``None``: no such source.

    ``unknown`` is the reason why files could not be counted; ``files`` and ``bytes`` are ``None`` then.
    """

    rows: int | None = None
    files: int | None = None
    bytes: int | None = None
    unknown: str | None = None


def has_read_all(batch: BatchRecord) -> bool:
    """Whether every source reports its rows, and none has any beyond the batch's end."""
    return bool(batch.sources) and not any(rows is None or rows for rows in rows_ahead(batch))


def every_source_counts(batch: BatchRecord) -> bool:
    """Whether each source reports its rows or has files that can be listed. Of a Delta table neither is known."""
    rows, files = rows_ahead(batch), _file_sources(batch)
    return bool(rows) and all(ahead is not None or index in files for index, ahead in enumerate(rows))


def stream_lag(ledger: Ledger, batch: BatchRecord | None) -> Lag:
    """The lag after a stream's newest batch, from what is there and the recorded entries of the sources' own logs.

    Lists nothing that has more than ``FILES_MAX`` files.
    """
    if batch is None:
        return Lag()
    read: dict[int, Mapping[int, str]] = {}
    for index in _file_sources(batch):
        log = f"sources/{index}"
        if len(ledger.entries(batch.stream, log)) > FILES_MAX:
            return Lag(lag_of(batch), unknown=f"source {index} has read files in more than {FILES_MAX:,} entries")
        read[index] = ledger.lines(batch.stream, log)
    return lag_after(batch, read)


def lag_after(batch: BatchRecord, recorded: Mapping[int, Mapping[int, str]]) -> Lag:
    """The lag after a batch. ``recorded`` has for each file source, by its index, the entries of its log by number."""
    sources = _file_sources(batch)
    if not sources:
        return Lag(lag_of(batch))
    sizes: list[int] = []
    for index, source in sources.items():
        read = SourceRange(str(index), None, source.end, recorded.get(index, {}))
        try:
            sizes += kind_described(source.description).live().unread(source.description, read, FILES_MAX)
        except (OSError, FormatError) as error:
            return Lag(lag_of(batch), unknown=f"source {index} cannot be listed: {error}")
        except Uncounted as reason:
            return Lag(lag_of(batch), unknown=f"source {index} {reason}")
    return Lag(lag_of(batch), len(sizes), sum(sizes))


def _file_sources(batch: BatchRecord) -> dict[int, BatchSource]:
    sources = enumerate(batch.sources)
    return {index: source for index, source in sources if kind_described(source.description).reads_files}
