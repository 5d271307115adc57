"""What is recorded of a stream's past: the verbatim log entries that a rebuild copies, and who executed which batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from slackwater.core.records import RunRecord

Ranges = Literal["recorded", "new"]
"""Whether the first batch that is processed again keeps its recorded range, or takes what its sources have by then:
a later stage, whose source is the output that an earlier one writes again."""


NEWEST_BATCHES = 200
"""Batches of the ledger that are read: more show no more of the present, and a stream can have a million."""


@dataclass(frozen=True, slots=True)
class History:
    """``metadata``, ``offsets/N``, ``commits/N``, the sink's log and ``sources/<i>/M`` as strings, by number.

    ``sources`` are by the position of a source in ``offsets/N``. ``source_logs`` are the numbers of their logs by
    position, where these are known: a DataFrame that the query reads twice has two positions and one log.
    ``event_time_max_ms``, ``event_time_min_ms`` and ``input_rows`` hold what progress events reported of a batch, where
    one was received.
    ``skipped`` are batches whose last run the sink skipped, so that neither events nor watermarks cover their rows.
    ``runs`` has the run that executed each batch, where that is known.
    ``newest_of_inputs_ms`` has, of a query with several watermarks, the newest event time of any input up to the end of
    a batch.
    ``durations_ms`` has how long each trigger took that executed a batch, where progress events reported it.
    ``sizes`` has the bytes of source files by their paths, as far as they were recorded when the files were read.
    ``begins`` is the first batch of the stream, or since its last reset: before it the state was empty. Of the batches
    before, only the entry of the last one is there, with the positions at which the first one starts.
    """

    metadata: str | None
    offsets: Mapping[int, str]
    commits: Mapping[int, str]
    written: Mapping[int, str]
    sources: Mapping[str, Mapping[int, str]]
    event_time_max_ms: Mapping[int, int]
    input_rows: Mapping[int, int]
    skipped: frozenset[int] = frozenset()
    runs: Mapping[int, RunRecord] = field(default_factory=dict)
    begins: int = 0
    sizes: Mapping[str, int] = field(default_factory=dict)
    durations_ms: Mapping[int, int] = field(default_factory=dict)
    source_logs: Mapping[str, str] = field(default_factory=dict)
    newest_of_inputs_ms: Mapping[int, int] = field(default_factory=dict)
    event_time_min_ms: Mapping[int, int] = field(default_factory=dict)
