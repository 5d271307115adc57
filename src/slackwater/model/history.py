"""What is recorded of a stream's past: the verbatim log entries that a rebuild copies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class History:
    """Texts of ``metadata``, ``offsets/N``, ``commits/N``, the sink's manifest and ``sources/<i>/M``, by number.

    ``event_time_max_ms`` and ``input_rows`` hold what progress events told of a batch, where one was received.
    ``skipped`` are batches whose last run the sink skipped, so that neither events nor watermarks tell of their rows.
    """

    metadata: str | None
    offsets: Mapping[int, str]
    commits: Mapping[int, str]
    written: Mapping[int, str]
    sources: Mapping[str, Mapping[int, str]]
    event_time_max_ms: Mapping[int, int]
    input_rows: Mapping[int, int]
    skipped: frozenset[int] = frozenset()
