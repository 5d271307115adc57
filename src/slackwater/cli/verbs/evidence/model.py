"""The document ``slackwater.evidence/1`` (docs/json.md), from which alone the page is made.

Batches are -1 for none and ``None`` for unknown. ``_ms`` fields are epoch milliseconds or durations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

SCHEMA: Final = "slackwater.evidence/1"
State = Literal["stop", "warning", "not-checked", "healthy"]
LaneName = Literal["planned", "committed", "state", "written", "recorded"]


@dataclass(frozen=True, slots=True)
class UnknownEntry:
    """A missing fact, the reason, and a way to make it known."""

    what: str
    reason: str
    how: str | None = None


@dataclass(frozen=True, slots=True)
class Head:
    """The gravest finding, if any; ``others`` are further stops and warnings."""

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
    """``name`` of an unrecorded checkpoint is its location."""

    name: str
    recorded: bool
    pipeline_file: str | None = None
    output_mode: str | None = None
    generation: int | None = None
    home: str | None = None
    ledger: str | None = None
    holder: str | None = None


@dataclass(frozen=True, slots=True)
class DamageEntry:
    path: str
    kind: str
    expected: str
    found: str


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """``settings`` are pinned by the newest entry in ``offsets/``."""

    location: str
    query_id: str | None
    spark_at_least: str | None
    spark_evidence: str
    offsets_version: int | None
    commits_version: int | None
    files: int
    bytes: int | None
    settings: Mapping[str, str]
    damage: tuple[DamageEntry, ...]
    leftovers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MarksEntry:
    planned: int
    committed: int
    state: int | None
    written: int | None
    pending_no_data: int | None
    next_batch: int
    next_planned: bool


@dataclass(frozen=True, slots=True)
class Lane:
    """The batches that a place keeps: its mark, and the first and last of each run. Entries of ``damaged`` cannot be
    read.
    """

    name: LaneName
    mark: int | None
    kept: tuple[tuple[int, int], ...]
    damaged: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PositionEntry:
    source: str
    offset: Any


@dataclass(frozen=True, slots=True)
class Batch:
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
    ends: tuple[PositionEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class UnservedEntry:
    """A part of the next batch's range that a source has lost."""

    problem: str
    place: str
    expected: str
    found: str
    records: int


@dataclass(frozen=True, slots=True)
class Source:
    """``start`` and ``end`` bound the planned next batch; without a planned batch both are the position."""

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
    unserved: tuple[UnservedEntry, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Store:
    name: str
    provider: str | None
    first: int | None
    last: int | None
    missing: tuple[int, ...]
    bytes: int | None


@dataclass(frozen=True, slots=True)
class OperatorEntry:
    id: int
    name: str
    inferred: bool
    partitions: int
    properties: Mapping[str, Any]
    stores: tuple[Store, ...]


@dataclass(frozen=True, slots=True)
class OutputEntry:
    kind: str
    location: str | None
    written: int | None
    skips_known_batches: bool
    guarantee: str | None
    guarantee_reason: str | None


@dataclass(frozen=True, slots=True)
class SinkEntry:
    """``owner``: the stream that the output names as its writer."""

    identity: Mapping[str, str]
    outputs: tuple[OutputEntry, ...]
    owner: str | None
    damage: tuple[DamageEntry, ...]
    orphans: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """``conditions`` are names of errors in the message; ``message`` needs ``--messages``."""

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
class OperationEntry:
    id: str
    goal: str
    status: str
    started_ms: int
    ended_ms: int | None
    summary: str | None


@dataclass(frozen=True, slots=True)
class FindingEntry:
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
class CauseEntry:
    code: str
    title: str
    state: str
    by: str


@dataclass(frozen=True, slots=True)
class Error:
    symptom: str
    certainty: str
    causes: tuple[CauseEntry, ...]


@dataclass(frozen=True, slots=True)
class NotCheckedEntry:
    code: str
    meaning: str
    reason: str
    how: str | None


@dataclass(frozen=True, slots=True)
class Evidence:
    """``checkpoint`` and ``marks`` are ``None`` for an unreadable checkpoint."""

    schema: Literal["slackwater.evidence/1"]
    slackwater: str
    made_ms: int
    head: Head
    stream: Stream
    checkpoint: Checkpoint | None
    marks: MarksEntry | None
    lanes: tuple[Lane, ...]
    batches: tuple[Batch, ...]
    sources: tuple[Source, ...]
    operators: tuple[OperatorEntry, ...]
    sink: SinkEntry | None
    runs: tuple[Run, ...]
    operations: tuple[OperationEntry, ...]
    findings: tuple[FindingEntry, ...]
    errors: tuple[Error, ...]
    not_checked: tuple[NotCheckedEntry, ...]
    unknown: tuple[UnknownEntry, ...]
    code_compared: bool
