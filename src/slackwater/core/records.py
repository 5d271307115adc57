"""The ledger's records, a value for each table, and a stream's recorded past."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

STREAM_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""Names become folders of the home."""

WATCHED = "watched"
"""The pipeline of queries that ``slackwater.watch`` records and Slackwater does not run."""


class StreamRecord(NamedTuple):
    """``sink`` is its identity: ``{"kind": "files", "path": <absolute URI>, "format": ...}``. ``pipeline_file`` is the
    last run's file or module. ``id`` never changes; outputs record it as their owner. ``session`` are the last run's
    options of Spark.
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
        return f"{self.pipeline}/{self.name}"

    @property
    def is_watched(self) -> bool:
        return self.pipeline == WATCHED

    @property
    def has_output(self) -> bool:
        """A checkpoint does not name an output."""
        return self.sink.get("kind") != "unknown"


class GenerationRecord(NamedTuple):
    """A checkpoint directory in the life of a stream.

    ``based_at`` is the last batch inherited from ``parent`` (``None``: nothing); ``parent`` ``None`` is the number just
    before. ``source_cut`` has the last inherited entry of ``sources/<source>``; absent sources inherit all, also
    entries after the new generation was built. ``layout`` is the state's ``QueryProfile.as_json`` and, under
    ``state_stores``, operators, partitions and stores of the first batches. ``begins`` is the first batch since a reset
    that kept the numbering. ``programs`` made batches and state, oldest first, as in ``model.state_programs``.
    """

    stream: str
    number: int
    location: str
    query_id: str | None = None
    based_at: int | None = None
    layout: Mapping[str, object] | None = None
    parent: int | None = None
    source_cut: Mapping[str, int] = {}
    begins: int | None = None
    programs: Sequence[Mapping[str, object]] | None = None

    @property
    def floor(self) -> int:
        """The newest batch that no output needs: before a reset's first batch, else -1."""
        return -1 if self.begins is None else self.begins - 1


class RunRecord(NamedTuple):
    """A query's life in a Spark application. ``ended_ms`` and ``end`` are ``None`` while it runs.

    ``settings`` are ``spark.sql.*`` settings that differ from Spark's defaults, and the user's own; ``code`` is the
    SHA-256 of the pipeline file and the project's modules. ``failure`` is ``transient`` or ``permanent``.
    ``rows_digest`` is as in ``QueryProfile``. ``program`` is the SHA-256 of the program; ``accepted`` has accepted
    changes (``codes``) and the user (``by``).
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


class BatchSource(NamedTuple):
    description: str
    start: str | None
    end: str | None
    latest: str | None
    input_rows: int


class BatchRecord(NamedTuple):
    """A batch in a progress event. ``state_bytes`` is the state stores' memory (``memoryUsedBytes``)."""

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
    durations_ms: Mapping[str, int] = {}
    run: int | None = None
    state_bytes: int | None = None


class LogLine(NamedTuple):
    """A verbatim log entry.

    ``log`` is ``metadata``, ``offsets``, ``commits``, ``sink`` or ``sources/<source>``; ``entry`` is the number in the
    file name. A compacted entry has only its own lines.
    """

    stream: str
    generation: int
    log: str
    entry: int
    text: str


class SinkMark(NamedTuple):
    """A sink's newest batch, -1 for none. ``committed`` was Spark's newest batch then. The sink skips a batch in
    between when it runs again.
    """

    stream: str
    seen_ms: int
    written: int
    committed: int | None = None


UNDOING = "undoing"


def member_id(operation: str, number: int) -> str:
    """The id of a later stage's operation; ``number`` is the stage's place, from 2."""
    return f"{operation}-{number}"


def leader_id(operation: str) -> str:
    """The id of the whole operation; without later stages its own."""
    return "-".join(operation.split("-")[:2])


class OperationRecord(NamedTuple):
    """``status``: applying, applied, refused, unknown, undoing, undone or pruned."""

    id: str
    stream: str
    goal: str
    status: str
    started_ms: int
    ended_ms: int | None = None
    summary: str = ""


class OperationFiles(NamedTuple):
    """Files in the folder can be edited or lost. ``home`` and ``stream_id`` are from the start of the operation."""

    operation: str
    home: str
    stream_id: str
    plan: str
    journal: str = ""


class Holder(NamedTuple):
    """The driver's Python process and its JVM, by pid and start time (clock ticks). ``pid_space`` names the host's boot
    and pid namespace: a pid can be looked up only if host and pid_space are equal.
    """

    host: str
    pid: int
    pid_started: int
    jvm_pid: int | None = None
    jvm_started: int | None = None
    pid_space: str = ""


class LeaseRecord(NamedTuple):
    """``fence`` grows with each holder; a released lease has none."""

    stream: str
    fence: int
    holder: Holder | None
    purpose: str
    acquired_ms: int
    heartbeat_ms: int


Ranges = Literal["recorded", "new"]
"""Whether the first batch processed again keeps its recorded range, or reads all that sources have by then: a later
stage, whose source an earlier stage writes again.
"""


NEWEST_BATCHES = 200
"""Batches that are read: a stream can have a million."""


@dataclass(frozen=True, slots=True)
class History:
    """A recorded past: ``metadata``, ``offsets/N``, ``commits/N``, the sink's log and ``sources/<i>/M`` as strings, by
    number.

    ``sources`` are by position in ``offsets/N``, and so are ``source_logs``, their logs' numbers: a DataFrame read
    twice has two positions, but a single log. ``event_time_max_ms``, ``event_time_min_ms`` and ``input_rows`` are from
    progress events. The sink skipped the last run of ``skipped`` batches, so that neither events nor watermarks cover
    their rows. ``runs`` executed the batches. With several watermarks, ``newest_of_inputs_ms`` is any input's newest
    event time up to a batch. ``sizes`` are bytes of source files, by path, when they were read. ``begins`` is the first
    batch, or since a reset: state was empty before it. Of the batches before, only the last batch's entry is there,
    with the start positions.
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
