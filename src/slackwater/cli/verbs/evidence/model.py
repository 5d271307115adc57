"""The document ``slackwater.evidence/1`` (docs/json.md), from which alone the page is made.

``redacted``, the last step over every value, keeps secrets and rows on the machine. Batches are -1 for none and
``None`` for unknown. ``_ms`` fields are epoch milliseconds or durations.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import Any, Final, Literal

from slackwater.core.checkpoint import Damage
from slackwater.core.facts import Unserved
from slackwater.core.masking import MASK, is_secret_name, mask, mask_setting
from slackwater.diagnose.causes import Cause
from slackwater.diagnose.checks.common.check import NotChecked
from slackwater.diagnose.error_texts import error_texts

SCHEMA: Final = "slackwater.evidence/1"
State = Literal["stop", "warning", "not-checked", "healthy"]
LaneName = Literal["planned", "committed", "state", "written", "recorded"]


_SPARKS_OWN = re.compile(
    r"spark\.(?:sql\.(?!catalog\.)|databricks\.|(?:executor|driver|task)\.(?:cores|cpus|memory|instances)|"
    r"shuffle\.|default\.|cores\.|memory\.|dynamicAllocation\.|speculation|locality\.|scheduler\.|network\.|"
    r"rpc\.|serializer|master$|version$)[\w.\-]*"
)
"""Settings of Spark's own; any other value may be a password."""
_OPTIONS_SHOWN = frozenset(
    {
        "startingoffsets", "endingoffsets", "startingtimestamp", "startingversion", "failondataloss",
        "maxoffsetspertrigger", "minoffsetspertrigger", "maxfilespertrigger", "maxbytespertrigger", "maxfileage",
        "latestfirst", "filenameonly", "cleansource", "format", "multiline", "header", "mode", "rowspersecond",
        "rowsperbatch", "numpartitions", "rampuptime", "subscribe", "subscribepattern", "ignorechanges",
        "ignoredeletes", "skipchangecommits", "readchangefeed", "schemaevolutionmode", "recursivefilelookup",
        "pathglobfilter", "modifiedafter", "modifiedbefore", "streaming-max-files-per-micro-batch",
    }
)  # fmt: skip
"""Options, in lower case, that bound a source's start and batches."""
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]{4,}(?:\.[A-Z][A-Z0-9_]+)*)\]")
_NAME = re.compile(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b")
_FIRST = re.compile(r"(?:\A|\.[A-Z]\w*(?:Exception|Error): )\[([A-Z][A-Z0-9]*_[A-Z0-9_]+(?:\.[A-Z0-9_]+)?)\]")
"""Spark puts an exception's condition at the start of a message, also after a class."""
_CLASS = re.compile(
    r"\b(?:(?:[a-z]\w*\.)+(?:\w+\$)*|(?=\w+:))([A-Z][A-Za-z0-9]{2,}(?:Exception|Error|Failure|Interrupted))\b"
)
"""With a package or before a colon: any other word can be of a row."""
_STATE = re.compile(r"\bSQLSTATE: ([0-9A-Z]{5})\b")


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
    damage: tuple[Damage, ...]
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
    unserved: tuple[Unserved, ...] = ()
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
    damage: tuple[Damage, ...]
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
class Error:
    symptom: str
    certainty: str
    causes: tuple[Cause, ...]


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
    not_checked: tuple[NotChecked, ...]
    unknown: tuple[UnknownEntry, ...]
    code_compared: bool


def shown_settings(values: Mapping[str, str]) -> dict[str, str]:
    """The values of Spark's own shown_settings; others are hidden."""
    return {name: _setting(name, str(value)) for name, value in sorted(values.items())}


def shown_options(values: Mapping[str, str]) -> dict[str, str]:
    """The values of harmless shown_options; others are hidden."""
    shown = {name: name.lower() in _OPTIONS_SHOWN for name in sorted(values)}
    return {name: mask_setting(name, str(values[name])) if known else MASK for name, known in shown.items()}


def named_conditions(message: str | None) -> tuple[str, ...]:
    """Error named_conditions, exception classes and SQL states in a message, without values.

    Exceptions can quote rows: ``The value 'alice' ... cannot be cast``. A name in brackets can be a row, unless it is a
    known condition, or in a condition's place.
    """
    text = message or ""
    first = {match.start(1) for match in _FIRST.finditer(text)}
    named = [match for match in _CONDITION.finditer(text) if match.start(1) in first or _is_known(match[1])]
    matches = (*named, *_CLASS.finditer(text), *_STATE.finditer(text))
    return tuple(dict.fromkeys(match[1] for match in matches))


def _is_known(condition: str) -> bool:
    return condition.partition(".")[0] in _known_conditions()


@cache
def _known_conditions() -> frozenset[str]:
    return frozenset(name for error in error_texts() for text in error.texts for name in _NAME.findall(text))


def redacted(value: Any, name: str = "") -> Any:
    """The value with all strings masked. ``name`` is its key."""
    if (values := fields_of(value)) is not None:
        return type(value)(**{key: redacted(item, key) for key, item in values.items()})
    if isinstance(value, str):
        text = value.encode("utf-8", "backslashreplace").decode()
        return MASK if is_secret_name(name) else mask(text)
    if isinstance(value, Mapping):
        return dict(_items(value))
    if isinstance(value, list | tuple | set | frozenset):
        items = value if isinstance(value, list | tuple) else sorted(value, key=str)
        return tuple(redacted(item, name) for item in items)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float) else redacted(str(value), name)


def fields_of(value: Any) -> dict[str, Any] | None:
    """The values of a dataclass or a named tuple by name."""
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return value._asdict() if isinstance(value, tuple) and hasattr(value, "_asdict") else None


def _items(value: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    for key, item in value.items():
        shown = mask(str(key).encode("utf-8", "backslashreplace").decode())
        yield shown, redacted(item, str(key))


def _setting(name: str, value: str) -> str:
    return mask_setting(name, value) if _SPARKS_OWN.fullmatch(name) else MASK
