"""The document ``slackwater.evidence/1`` (docs/json.md). The page is made from it alone, so both show the same.

Batches are numbers, -1 for none and ``None`` for unknown. Fields that end in ``_ms`` are epoch milliseconds, or
milliseconds of a duration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

SCHEMA: Final = "slackwater.evidence/1"
State = Literal["stop", "warning", "not-checked", "healthy"]
LaneName = Literal["planned", "committed", "state", "written", "recorded"]


@dataclass(frozen=True, slots=True)
class Unknown:
    """A fact that could not be gathered: ``what``, why, and what would make it known."""

    what: str
    reason: str
    how: str | None = None


@dataclass(frozen=True, slots=True)
class Head:
    """What comes first: the gravest finding, or that there is none. ``others`` are further stops and warnings."""

    state: State
    code: str
    text: str
    risk: str = "none"
    certainty: str | None = None
    at_stake: str | None = None
    goal: str | None = None
    next: str | None = None
    advice: str | None = None
    where: str | None = None
    expected: str | None = None
    found: str | None = None
    others: int = 0
    not_checked: int = 0


@dataclass(frozen=True, slots=True)
class Stream:
    """The stream as the home knows it. ``name`` is the location of a checkpoint that is not recorded."""

    name: str
    recorded: bool
    pipeline_file: str | None = None
    output_mode: str | None = None
    generation: int | None = None
    home: str | None = None
    ledger: str | None = None
    holder: str | None = None


@dataclass(frozen=True, slots=True)
class Damage:
    """A file of the checkpoint or of the output that is damaged."""

    path: str
    kind: str
    expected: str
    found: str


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The files of the checkpoint. ``settings`` are those that the newest entry in ``offsets/`` pins."""

    location: str
    query_id: str | None
    spark_at_least: str | None
    spark_evidence: str
    offsets_version: int | None
    commits_version: int | None
    files: int
    bytes: int | None
    settings: Mapping[str, str]
    damage: tuple[Damage, ...]
    leftovers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Marks:
    """The number line."""

    planned: int
    committed: int
    state: int | None
    written: int | None
    pending_no_data: int | None
    next_batch: int
    next_planned: bool


@dataclass(frozen=True, slots=True)
class Lane:
    """A place that keeps batches: its mark, and the batches that are still there, as first and last of each run.

    ``damaged`` are those of them whose entry cannot be read.
    """

    name: LaneName
    mark: int | None
    kept: tuple[tuple[int, int], ...]
    damaged: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Position:
    """The end of a source in a batch, as Spark wrote it."""

    source: str
    offset: Any


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch: what the checkpoint's logs have of it, and what the ledger has of its progress."""

    batch: int
    planned: bool
    committed: bool
    written: bool | None
    planned_ms: int | None = None
    watermark_ms: int | None = None
    next_watermark_ms: int | None = None
    run: int | None = None
    input_rows: int | None = None
    output_rows: int | None = None
    late_rows: int | None = None
    state_rows: int | None = None
    event_time_min_ms: int | None = None
    event_time_max_ms: int | None = None
    duration_ms: int | None = None
    ends: tuple[Position, ...] = ()


@dataclass(frozen=True, slots=True)
class Unserved:
    """What a source does not have of the next batch's range."""

    problem: str
    place: str
    expected: str
    found: str
    records: int


@dataclass(frozen=True, slots=True)
class Source:
    """A source. ``start`` and ``end`` bound the planned next batch; where none is planned both are its position."""

    name: str
    kind: str
    start: Any
    end: Any
    initial: Any = None
    latest: Any = None
    description: str | None = None
    log_first: int | None = None
    log_last: int | None = None
    log_files: int | None = None
    missing_files: tuple[str, ...] = ()
    unserved: tuple[Unserved, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Store:
    """A state store of an operator over all partitions, with the versions that can be loaded."""

    name: str
    provider: str | None
    first: int | None
    last: int | None
    missing: tuple[int, ...]
    bytes: int | None


@dataclass(frozen=True, slots=True)
class Operator:
    """A stateful operator."""

    id: int
    name: str
    inferred: bool
    partitions: int
    properties: Mapping[str, Any]
    stores: tuple[Store, ...]


@dataclass(frozen=True, slots=True)
class Output:
    """One of the outputs that a batch is written into."""

    kind: str
    location: str | None
    written: int | None
    skips_known_batches: bool
    guarantee: str | None
    guarantee_reason: str | None


@dataclass(frozen=True, slots=True)
class Sink:
    """The sink with its outputs. ``owner`` is the stream that the output names as its writer."""

    identity: Mapping[str, str]
    outputs: tuple[Output, ...]
    owner: str | None
    damage: tuple[Damage, ...]
    orphans: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """One run. ``conditions`` are the names of errors in its message; ``message`` is there only with ``--messages``."""

    id: int
    generation: int
    spark_version: str
    started_ms: int
    ended_ms: int | None
    end: str | None
    failure: str | None
    failure_code: str | None
    conditions: tuple[str, ...]
    message: str | None
    program: str | None
    settings: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Operation:
    """A plan that was applied, or that was started."""

    id: str
    goal: str
    status: str
    started_ms: int
    ended_ms: int | None
    summary: str | None


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding of ``doctor``, with the text of ``explain`` by its headings."""

    code: str
    severity: str
    text: str
    risk: str
    certainty: str
    at_stake: str | None
    goal: str | None
    next: str | None
    advice: str | None
    where: str | None
    expected: str | None
    found: str | None
    covers: tuple[str, ...]
    facts: Mapping[str, Any]
    explanation: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Cause:
    """A failure of the catalogue that an error text may mean."""

    code: str
    title: str
    state: str
    by: str


@dataclass(frozen=True, slots=True)
class Error:
    """A text of a failure that was recognised, without the text."""

    symptom: str
    certainty: str
    causes: tuple[Cause, ...]


@dataclass(frozen=True, slots=True)
class NotChecked:
    """A check whose facts are missing."""

    code: str
    meaning: str
    reason: str
    how: str | None


@dataclass(frozen=True, slots=True)
class Evidence:
    """All of it. ``checkpoint`` and ``marks`` are ``None`` where the checkpoint cannot be read."""

    schema: Literal["slackwater.evidence/1"]
    slackwater: str
    made_ms: int
    head: Head
    stream: Stream
    checkpoint: Checkpoint | None
    marks: Marks | None
    lanes: tuple[Lane, ...]
    batches: tuple[Batch, ...]
    sources: tuple[Source, ...]
    operators: tuple[Operator, ...]
    sink: Sink | None
    runs: tuple[Run, ...]
    operations: tuple[Operation, ...]
    findings: tuple[Finding, ...]
    errors: tuple[Error, ...]
    not_checked: tuple[NotChecked, ...]
    unknown: tuple[Unknown, ...]
    code_compared: bool
