"""A query's program: the meaning of its code for rows and state.

Recorded with each run, and compared before the next start (``slackwater.diagnose.program_changes``). Expressions are
canonical strings: columns are traced to the sources, aliases substituted, filters are sets of conjuncts, commutative
operands sorted.

A generation's programs are a list with entries ``{"after": N, "program": {...}}``. N was the newest committed batch at
the start, -1 for none. A program that committed nothing made no state; the next start replaces its entry.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Shape = TypeVar("_Shape", bound="DataclassInstance")

OperatorKind = Literal[
    "aggregate", "deduplicate", "deduplicate-within-watermark", "join", "limit", "pandas-state", "transform-with-state",
    "groups-with-state",
]  # fmt: skip
WindowKind = Literal["tumbling", "sliding", "session"]

TIME_ZONE = "TZ"
"""The process's time zone, also in ``Program.environment``."""
EXECUTOR_VARIABLE = "spark.executorEnv."
"""Before a variable that only a setting shows, and no code."""
PROCESS_VARIABLE = "environment."
"""Before a process variable among a run's settings."""


@dataclass(frozen=True, slots=True)
class Traced:
    """An expression below its name in the query; ``reads`` are columns of sources. ``type`` is Spark's name."""

    name: str
    text: str
    reads: tuple[str, ...] = ()
    type: str = ""


@dataclass(frozen=True, slots=True)
class Window:
    """``time`` is the expression of the event time; ``gap`` is a session's, else empty."""

    kind: WindowKind
    time: str
    length_ms: int = 0
    slide_ms: int = 0
    offset_ms: int = 0
    gap: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Watermark:
    column: str
    delay_ms: int = 0


@dataclass(frozen=True, slots=True)
class SourceShape:
    """Sources are in the order of ``offsets/`` lines. ``kind`` is Spark's format (``json``, ``kafka``), ``location`` a
    path, topics or a table. ``options`` have masked secrets.
    """

    kind: str
    location: str = ""
    schema: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class InputShape:
    """``base`` is a source, a union, or the operator below. ``filters`` are all conjuncts that Spark can apply before
    the operator. ``columns`` are the kept columns, in order if it matters. A union has an input for each branch;
    ``side`` is a join's.
    """

    base: str
    steps: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    columns: tuple[Traced, ...] = ()
    watermarks: tuple[Watermark, ...] = ()
    functions: tuple[str, ...] = ()
    side: Literal["", "left", "right"] = ""


@dataclass(frozen=True, slots=True)
class OperatorShape:
    """``functions`` are names in ``Program.functions``, the inputs' included. ``settings`` depend on the kind:
    ``timeout``, ``mode``, ``limit``.
    """

    kind: OperatorKind
    inputs: tuple[InputShape, ...] = ()
    keys: tuple[Traced, ...] = ()
    windows: tuple[Window, ...] = ()
    aggregates: tuple[Traced, ...] = ()
    join_type: str = ""
    conditions: tuple[str, ...] = ()
    state_schema: tuple[str, ...] = ()
    output_schema: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    functions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """A query as its analysed plan shows it. ``operators`` are in preorder, the nearest to the output first.

    ``rows`` follows the last stateful operator, or is a whole stateless query. ``functions`` has digests of the plan's
    Python functions, ``code`` of all code that the stream's function reaches. ``values`` has digests of captured
    variables, ``outside`` dependencies that cannot be compared. ``settings`` of the session change results of the same
    plan.

    ``environment`` is the process environment of operators' functions: the time zone's name, and digests of variables,
    empty if not set; ``output_environment`` the same for functions behind the last operator. ``versions`` are of Python
    and libraries.
    """

    spark_version: str = ""
    output_mode: str = "append"
    sources: tuple[SourceShape, ...] = ()
    operators: tuple[OperatorShape, ...] = ()
    rows: tuple[InputShape, ...] = ()
    output_schema: tuple[str, ...] = ()
    functions: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    output_environment: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    outside: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    code: str | None = None

    @property
    def stateful(self) -> bool:
        return bool(self.operators)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Program:
        """Raises LookupError, ValueError, TypeError or AttributeError for a malformed program."""
        return _decoded(cls, value)


def _decoded(kind: type[_Shape], value: Mapping[str, Any]) -> _Shape:
    """Absent fields, and null, are the default."""
    found: dict[str, Any] = {}
    for field_ in fields(kind):
        given = value.get(field_.name)
        if given is None:
            continue
        part = _PARTS.get(field_.name, str)
        match field_.default if field_.default_factory is MISSING else field_.default_factory():
            case tuple():
                given = tuple(map(part, given))
            case dict():
                given = {name: part(one) for name, one in given.items()}
            case int() | str() as default:
                given = type(default)(given)
        found[field_.name] = given
    return kind(**found)


def _texts(value: Sequence[Any]) -> tuple[str, ...]:
    return tuple(str(one) for one in value)


_PARTS: Mapping[str, Callable[[Any], object]] = {
    "sources": partial(_decoded, SourceShape),
    "operators": partial(_decoded, OperatorShape),
    "rows": partial(_decoded, InputShape),
    "inputs": partial(_decoded, InputShape),
    "columns": partial(_decoded, Traced),
    "keys": partial(_decoded, Traced),
    "aggregates": partial(_decoded, Traced),
    "windows": partial(_decoded, Window),
    "watermarks": partial(_decoded, Watermark),
    "values": dict,
    "outside": _texts,
}
"""Decoders of one value, by the name of a program's field with several; other fields have texts."""


Entry = Mapping[str, object]
AFTER, PROGRAM = "after", "program"

MOST = 20
"""The newest entries are kept."""


def digest_of(program: Mapping[str, object]) -> str:
    return sha256(json.dumps(program, sort_keys=True).encode()).hexdigest()


def program_of_batch(entries: Sequence[Entry] | None, batch: int) -> Mapping[str, object] | None:
    made = entries_until(entries, batch)
    program = made[-1].get(PROGRAM) if made else None
    return program if isinstance(program, Mapping) else None


def parsed_program(entries: Sequence[Entry] | None, batch: int) -> Program | None:
    """The program; ``None`` also for a malformed program."""
    recorded = program_of_batch(entries, batch)
    try:
        return None if recorded is None else Program.from_json(recorded)
    except (LookupError, ValueError, TypeError, AttributeError):
        return None


def entries_until(entries: Sequence[Entry] | None, batch: int) -> list[Entry]:
    numbered = [(entry.get(AFTER), entry) for entry in entries or ()]
    return [entry for after, entry in numbered if (after if isinstance(after, int) else -1) < batch]


def with_started(entries: Sequence[Entry] | None, program: Mapping[str, object] | None, committed: int) -> list[Entry]:
    """Entries after a start of ``program`` behind batch ``committed``; ``None``: unknown."""
    kept = entries_until(entries, committed)
    before = kept[-1].get(PROGRAM) if kept else None
    if before == program:
        return kept
    return [*kept, {AFTER: committed, PROGRAM: program}][-MOST:]


def made_by(program: Mapping[str, object] | None) -> list[Entry]:
    """No entries for an unknown program."""
    return [] if program is None else [{AFTER: -1, PROGRAM: program}]


RowOrder = Literal["any"]


@dataclass(frozen=True, slots=True)
class QueryProfile:
    """Stateful operators (Spark's logical nodes), watermark delays and window lengths, in milliseconds.

    ``retention_ms`` is how far behind the watermark rows matter for later output; ``None``: unknown, and only a replay
    from batch 0 is exact. ``sources`` are in offset order, as are ``source_logs``, the numbers of their logs: a
    DataFrame read twice has two lines, but a single log (``MicroBatchExecution.logicalPlan``). ``rows_digest`` is a
    SHA-256 of everything that decides which rows with which event times reach the watermarks, in a plan of the
    optimiser of ``spark_version``: other releases make other plans. ``by_order`` names aggregates that depend on row
    order, such as ``first``. ``reads_tables``: a joined table reaches state. ``random`` names parts that differ at each
    computation, such as ``rand``. ``late_in_chain``: an operator returns rows that the next stateful operator drops as
    late. ``asks_for_batches``: Spark runs a batch without data when the watermark advances (``shouldRunAnotherBatch``
    of a stateful operator), also assumed if unknown. ``session_gap_ms`` is set if sessions with a constant gap are the
    only state, ``window_starts_ms`` if windows of equal length are: they start at this interval, aligned to the second
    number after the epoch.
    """

    operators: tuple[str, ...]
    watermark_delays_ms: tuple[int, ...]
    windows_ms: tuple[int, ...]
    retention_ms: int | None
    sources: tuple[str, ...]
    rows_digest: str | None = None
    source_logs: tuple[str, ...] = ()
    random: tuple[str, ...] = ()
    late_in_chain: bool = False
    by_order: tuple[str, ...] = ()
    reads_tables: bool = False
    asks_for_batches: bool = True
    session_gap_ms: int | None = None
    window_starts_ms: tuple[int, int] | None = None
    spark_version: str = ""

    @property
    def stateful(self) -> bool:
        return bool(self.operators)

    @property
    def logs_of_sources(self) -> Mapping[str, str]:
        return {str(position): log for position, log in enumerate(self.source_logs)}

    def as_json(self) -> dict[str, Any]:
        """The ledger's form; rare facts only if they hold."""
        found = {name: value for name, value in asdict(self).items() if value or name not in _RARE}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> QueryProfile:
        found: dict[str, Any] = {one.name: value[one.name] for one in fields(cls) if one.name in value}
        return cls(**found | {name: tuple(one) for name, one in found.items() if isinstance(one, list)})


_RARE = frozenset({"random", "late_in_chain", "by_order", "reads_tables"})


_NOT_REPRODUCIBLE = {
    "DeduplicateWithinWatermark": "dropDuplicatesWithinWatermark: the first row of a key wins, and the order of rows "
    "inside a batch is not fixed",
    "FlatMapGroupsInPandasWithState": "applyInPandasWithState: a function of the user's own",
    "FlatMapGroupsWithState": "flatMapGroupsWithState: a function of the user's own",
    "TransformWithState": "transformWithState: a function of the user's own",
    "TransformWithStateInPandas": "transformWithState: a function of the user's own",
    "TransformWithStateInPySpark": "transformWithState: a function of the user's own",
    "GlobalLimit": "limit: which rows come first is not fixed",
}
ARBITRARY = {name for name, reason in _NOT_REPRODUCIBLE.items() if reason.endswith("a function of the user's own")}
"""State that a replay of all batches recomputes if the function gives the same for any row order."""
_BY_ORDER = "an aggregate whose result depends on the order of rows, and their order inside a batch is not fixed"


def not_reproducible(profile: QueryProfile, row_order: RowOrder | None = None) -> tuple[str, str] | None:
    """A part that no replay recomputes exactly, and the reason."""
    if profile.random and profile.stateful:
        return ", ".join(profile.random), "its value differs each time, and the state is made of it"
    names = [one for one in profile.operators if not (one in ARBITRARY and row_order == "any")]
    found = next(((one, _NOT_REPRODUCIBLE[one]) for one in names if one in _NOT_REPRODUCIBLE), None)
    if found is None and profile.by_order and row_order != "any":
        return ", ".join(profile.by_order), _BY_ORDER
    return found


TriggerKind = Literal["processing-time", "available-now", "once", "continuous", "real-time"]


@dataclass(frozen=True, slots=True)
class Trigger:
    """``interval`` is Spark's spelling of a duration; triggers that end by themselves have none."""

    kind: TriggerKind
    interval: str | None = None

    @property
    def ends_by_itself(self) -> bool:
        return self.kind in ("available-now", "once")

    @property
    def in_micro_batches(self) -> bool:
        """Whether a batch's range is in the offset log before its rows are read."""
        return self.kind not in ("continuous", "real-time")

    @property
    def waits(self) -> bool:
        """Whether it waits between batches although there may be data."""
        return self.kind == "processing-time" and not re.match(r"\s*0+\s*[a-z]", self.interval or "")
