"""The records of the ledger, one frozen value for each table.

Also a stream's recorded past: the verbatim log entries that a rebuild copies, and who executed which batch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

STREAM_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""What pipelines and streams can be named: the names become folders of the home."""

WATCHED = "watched"
"""The pipeline of queries that Slackwater does not run and ``slackwater.watch`` has recorded."""


@dataclass(frozen=True, slots=True)
class StreamRecord:
    """A stream of a home. ``sink`` is its identity: ``{"kind": "files", "path": <absolute URI>, "format": ...}``.

    ``pipeline_file`` is the file or module of the last run, ``current_generation`` the number of the checkpoint in use.
    ``id`` is given to the stream once and never changes; an output records it as its owner. ``session`` are the options
    with which the last run started Spark (``session_words``), for the commands that are printed.
    """

    pipeline: str
    name: str
    sink: Mapping[str, str]
    output_mode: str
    pipeline_file: str
    current_generation: int = 1
    id: str | None = None
    session: tuple[str, ...] = ()

    @property
    def full_name(self) -> str:
        """``pipeline/stream``: unique in a home."""
        return f"{self.pipeline}/{self.name}"

    @property
    def is_watched(self) -> bool:
        """Whether the user's own program runs the query, with a checkpoint at the path that it names."""
        return self.pipeline == WATCHED

    @property
    def has_output(self) -> bool:
        """Whether it is recorded where the query writes: the checkpoint of an adopted query does not name that."""
        return self.sink.get("kind") != "unknown"


@dataclass(frozen=True, slots=True)
class GenerationRecord:
    """One checkpoint directory in the life of a stream.

    ``based_at`` is the last batch inherited from ``parent`` (``None``: nothing is inherited); ``parent`` is the
    generation it was built from, ``None`` for the one numbered just before. ``source_cut`` has for each source the
    last entry of ``sources/<source>`` that is inherited; a source that is absent inherits all of them, also those that
    the parent takes after the new generation was built.
    ``layout`` describes the state as in the query's plan (``QueryProfile.as_json``) and, under ``state_stores``, the
    operators, partitions and stores that its first batches made.
    ``begins`` is the first batch since a reset that kept the numbering: nothing of the batches before it counts.
    ``programs`` are the programs that made the batches and the state, oldest first, as in ``model.state_programs``.
    """

    stream: str
    number: int
    location: str
    query_id: str | None = None
    based_at: int | None = None
    layout: Mapping[str, object] | None = None
    parent: int | None = None
    source_cut: Mapping[str, int] = field(default_factory=dict)
    begins: int | None = None
    programs: Sequence[Mapping[str, object]] | None = None

    @property
    def floor(self) -> int:
        """The newest batch that no output needs to have: the one before the first of a reset, else -1."""
        return -1 if self.begins is None else self.begins - 1


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One life of a query in one Spark application. ``ended_ms`` and ``end`` are ``None`` while it runs.

    ``settings`` are the session's ``spark.sql.*`` settings that differ from Spark's defaults, and the user's own;
    ``code`` is the SHA-256 of the pipeline file and of the project's modules that it imports. Of a failed run
    ``failure`` is ``transient`` or ``permanent`` and ``failure_code`` a stable code of what failed, where one is known.
    ``rows_digest`` is that of ``QueryProfile``, for the query of this run. ``program`` is the
    SHA-256 of the query's program; ``accepted`` has, under ``codes``, the changes that the user accepted at this start,
    and under ``by`` the user. ``trigger_ms`` is the time between two batches that its trigger asks for, if it waits.
    """

    id: int
    stream: str
    generation: int
    spark_version: str
    started_ms: int
    ended_ms: int | None = None
    end: str | None = None
    reason: str | None = None
    stop_requested_ms: int | None = None
    settings: Mapping[str, str] | None = None
    code: str | None = None
    failure: str | None = None
    failure_code: str | None = None
    rows_digest: str | None = None
    program: str | None = None
    accepted: Mapping[str, object] | None = None
    trigger_ms: int | None = None


@dataclass(frozen=True, slots=True)
class BatchSource:
    """One source's part in a batch, from the query's progress: offsets as JSON strings, as Spark reports them."""

    description: str
    start: str | None
    end: str | None
    latest: str | None
    input_rows: int


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """One finished batch, from its progress event. Times are epoch milliseconds, durations milliseconds.

    ``run`` is the id of the run that executed it, ``None`` where that is not recorded. ``state_bytes`` is the memory
    that the state stores used (``memoryUsedBytes`` of the operators).
    """

    stream: str
    generation: int
    batch_id: int
    timestamp_ms: int
    input_rows: int
    sources: tuple[BatchSource, ...] = ()
    watermark_ms: int | None = None
    event_time_min_ms: int | None = None
    event_time_max_ms: int | None = None
    late_rows: int = 0
    state_rows: int = 0
    output_rows: int | None = None
    durations_ms: Mapping[str, int] = field(default_factory=dict)
    run: int | None = None
    state_bytes: int | None = None


class BatchSummary(NamedTuple):
    """What a plan needs of each batch, with the fields of ``BatchRecord``."""

    batch_id: int
    run: int | None
    input_rows: int
    event_time_min_ms: int | None
    event_time_max_ms: int | None
    durations_ms: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class LogLine:
    """One entry of a checkpoint's or sink's text log, verbatim.

    ``log`` is ``metadata``, ``offsets``, ``commits``, ``sink`` or ``sources/<source>``; ``entry`` is the number in its
    file name. An entry that Spark compacted is kept as the lines that belong to this entry alone. ``caught-up`` and
    ``available-now`` are what a run has recorded of its sources (``ledger/lineage.py``).
    """

    stream: str
    generation: int
    log: str
    entry: int
    text: str


@dataclass(frozen=True, slots=True)
class SinkMark:
    """The newest batch that a stream's sink showed when it was read; -1 for none.

    ``committed`` is the newest batch that Spark had committed then, ``None`` where that was not read. A batch in
    between is one that the sink skips when it is run again.
    """

    stream: str
    seen_ms: int
    written: int
    committed: int | None = None


UNDOING = "undoing"
"""The status of an operation while it is taken back."""


def member_id(operation: str, number: int) -> str:
    """The id of what an operation does on a later stage; ``number`` is its place in the order, from 2."""
    return f"{operation}-{number}"


def leader_id(operation: str) -> str:
    """The id of the whole operation that one on a later stage belongs to; of any other its own."""
    return "-".join(operation.split("-")[:2])


@dataclass(frozen=True, slots=True)
class OperationRecord:
    """A plan with its outcome. ``status``: applying, applied, refused, unknown, undoing, undone or pruned."""

    id: str
    stream: str
    goal: str
    status: str
    started_ms: int
    ended_ms: int | None = None
    summary: str = ""


@dataclass(frozen=True, slots=True)
class OperationFiles:
    """What an operation has written into its folder, recorded as it was written: the files there can be edited or lost.

    ``home`` and ``stream_id`` are the ids of the home and of the stream that it was started for.
    """

    operation: str
    home: str
    stream_id: str
    plan: str
    journal: str = ""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a lease: the driver's Python process and its JVM, each by process id and start time (clock ticks).

    ``pid_space`` names the boot and the process-id namespace of the host: only where both host and pid_space are the
    same can a process id be looked up.
    """

    host: str
    pid: int
    pid_started: int
    jvm_pid: int | None = None
    jvm_started: int | None = None
    pid_space: str = ""


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """Who may write to a stream now. ``fence`` grows with each new holder; ``holder`` is ``None`` once released."""

    stream: str
    fence: int
    holder: Holder | None
    purpose: str
    acquired_ms: int
    heartbeat_ms: int


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
