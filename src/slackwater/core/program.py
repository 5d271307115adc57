"""A query's program: what its code means for the rows it writes and for the state it keeps.

Recorded with each run, and compared before the next start (``slackwater.diagnose.program_changes``). All expressions
are strings in a canonical form: columns are traced through projections to the columns of the sources, aliases are
substituted, filters are sets of conjuncts, operands whose order does not matter are sorted.

The programs of a generation are a list in the ledger and in ``stream.json``: each entry is ``{"after": N,
"program": {...}}``. N was the newest committed batch when the program was started, -1 for none. A program that was
started and committed nothing made no state; the next start replaces its entry.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Any, Literal

OperatorKind = Literal[
    "aggregate", "deduplicate", "deduplicate-within-watermark", "join", "limit", "pandas-state", "transform-with-state",
    "groups-with-state",
]  # fmt: skip
WindowKind = Literal["tumbling", "sliding", "session"]

TIME_ZONE = "TZ"
"""The variable of the process's time zone, and its name in ``Program.environment``."""
EXECUTOR_VARIABLE = "spark.executorEnv."
"""Before the name of a variable that only a setting shows, and no code."""
PROCESS_VARIABLE = "environment."
"""Before the name of a variable of the process among the settings of a run."""


@dataclass(frozen=True, slots=True)
class Traced:
    """An expression below the name it has in the query. ``reads`` are the columns of sources in it.

    ``type`` is Spark's name of its type, empty where the plan does not show it.
    """

    name: str
    text: str
    reads: tuple[str, ...] = ()
    type: str = ""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Traced:
        """The recorded expression."""
        return cls(
            str(value.get("name", "")),
            str(value.get("text", "")),
            _texts(value.get("reads")),
            str(value.get("type", "")),
        )


@dataclass(frozen=True, slots=True)
class Window:
    """A time window. ``time`` is the expression of its event time; ``gap`` that of a session, else empty."""

    kind: WindowKind
    time: str
    length_ms: int = 0
    slide_ms: int = 0
    offset_ms: int = 0
    gap: str = ""
    text: str = ""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Window:
        """The recorded window."""
        return cls(**{key: value[key] for key in cls.__slots__ if key in value})


@dataclass(frozen=True, slots=True)
class Watermark:
    """The event time of a ``withWatermark`` below an operator, and its delay."""

    column: str
    delay_ms: int = 0

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Watermark:
        """The recorded watermark."""
        return cls(str(value["column"]), int(value.get("delay_ms", 0)))


@dataclass(frozen=True, slots=True)
class SourceShape:
    """A streaming source, in the order of the lines of an ``offsets/`` entry.

    ``kind`` is Spark's name of the format (``json``, ``kafka``), ``location`` what the source reads (a path, topics, a
    table), ``schema`` the columns with their types. ``options`` are all others; secrets are masked.
    """

    kind: str
    location: str = ""
    schema: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> SourceShape:
        """The recorded source."""
        return cls(
            str(value["kind"]),
            str(value.get("location", "")),
            dict(value.get("schema") or {}),
            dict(value.get("options") or {}),
        )


@dataclass(frozen=True, slots=True)
class InputShape:
    """The rows that reach an operator, or the output: a base, steps that turn a row into others, and filters.

    ``base`` is a source, a union, or the operator below. ``filters`` are the conjuncts of all filters that Spark can
    apply before the operator, also of those that the query applies after it. ``columns`` are the columns that are kept
    or handed on, in their order, where that matters. A union has an input for each branch; ``side`` is that of a join.
    """

    base: str
    steps: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    columns: tuple[Traced, ...] = ()
    watermarks: tuple[Watermark, ...] = ()
    functions: tuple[str, ...] = ()
    side: Literal["", "left", "right"] = ""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> InputShape:
        """The recorded input."""
        return cls(
            str(value.get("base", "")),
            _texts(value.get("steps")),
            _texts(value.get("filters")),
            tuple(Traced.from_json(one) for one in value.get("columns") or ()),
            tuple(Watermark.from_json(one) for one in value.get("watermarks") or ()),
            _texts(value.get("functions")),
            value.get("side", ""),
        )


@dataclass(frozen=True, slots=True)
class OperatorShape:
    """A stateful operator with all that gives its state a meaning.

    ``functions`` are the Python functions in it and in what reaches it, by their names in ``Program.functions``.
    ``settings`` are those of its kind: ``timeout``, ``mode``, ``limit``.
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

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> OperatorShape:
        """The recorded operator."""
        return cls(
            kind=value["kind"],
            inputs=tuple(InputShape.from_json(one) for one in value.get("inputs") or ()),
            keys=tuple(Traced.from_json(one) for one in value.get("keys") or ()),
            windows=tuple(Window.from_json(one) for one in value.get("windows") or ()),
            aggregates=tuple(Traced.from_json(one) for one in value.get("aggregates") or ()),
            join_type=str(value.get("join_type", "")),
            conditions=_texts(value.get("conditions")),
            state_schema=_texts(value.get("state_schema")),
            output_schema=_texts(value.get("output_schema")),
            settings=dict(value.get("settings") or {}),
            functions=_texts(value.get("functions")),
        )


@dataclass(frozen=True, slots=True)
class Program:
    """A query as its analysed plan shows it. ``operators`` are in preorder: the one nearest to the output is first.

    ``rows`` is what follows the last stateful operator, or the whole of a stateless query. ``functions`` has the
    digest of each Python function that the plan names, ``code`` the digest of all that the stream's function reaches
    (``None``: not known). ``values`` has digests of what each function takes with it, by the names of variables, and
    ``outside`` what else it depends on, which cannot be compared.
    ``settings`` are session settings that change what the same plan computes.

    ``environment`` is what the functions of operators get from their process: the name of its time zone, and of each
    variable a digest, empty where it is not set. ``output_environment`` is the same for the functions behind the last
    operator, or of a stateless query. ``versions`` has those of Python and of the libraries they use.
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
        """Whether the query keeps any state."""
        return bool(self.operators)

    def as_json(self) -> dict[str, Any]:
        """The form in which the ledger keeps it."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Program:
        """The recorded program."""
        return cls(
            spark_version=str(value.get("spark_version", "")),
            output_mode=str(value.get("output_mode", "append")),
            sources=tuple(SourceShape.from_json(one) for one in value.get("sources") or ()),
            operators=tuple(OperatorShape.from_json(one) for one in value.get("operators") or ()),
            rows=tuple(InputShape.from_json(one) for one in value.get("rows") or ()),
            output_schema=_texts(value.get("output_schema")),
            functions=dict(value.get("functions") or {}),
            settings=dict(value.get("settings") or {}),
            environment=dict(value.get("environment") or {}),
            output_environment=dict(value.get("output_environment") or {}),
            versions=dict(value.get("versions") or {}),
            values={name: dict(one) for name, one in (value.get("values") or {}).items()},
            outside={name: _texts(one) for name, one in (value.get("outside") or {}).items()},
            code=value.get("code"),
        )


def _texts(value: Sequence[Any] | None) -> tuple[str, ...]:
    return tuple(str(one) for one in value or ())


Entry = Mapping[str, object]
AFTER, PROGRAM = "after", "program"

MOST = 20
"""Entries kept, the newest ones: a checkpoint keeps the state of about a hundred batches, not of its whole past."""


def digest_of(program: Mapping[str, object]) -> str:
    """The SHA-256 of a program, as the runs that had it record it."""
    return sha256(json.dumps(program, sort_keys=True).encode()).hexdigest()


def program_of_batch(entries: Sequence[Entry] | None, batch: int) -> Mapping[str, object] | None:
    """The program that made a committed batch and the state after it; ``None`` where it is not recorded."""
    made = entries_until(entries, batch)
    program = made[-1].get(PROGRAM) if made else None
    return program if isinstance(program, Mapping) else None


def parsed_program(entries: Sequence[Entry] | None, batch: int) -> Program | None:
    """``program_of_batch`` as a value; ``None`` also for one that cannot be parsed."""
    recorded = program_of_batch(entries, batch)
    try:
        return None if recorded is None else Program.from_json(recorded)
    except (LookupError, ValueError, TypeError, AttributeError):
        return None


def entries_until(entries: Sequence[Entry] | None, batch: int) -> list[Entry]:
    """The entries of the programs that made the batches up to ``batch``."""
    return [entry for entry in entries or () if _after(entry) < batch]


def with_started(entries: Sequence[Entry] | None, program: Mapping[str, object] | None, committed: int) -> list[Entry]:
    """The entries when ``program`` is started with ``committed`` as the newest committed batch; ``None``: unknown."""
    kept = entries_until(entries, committed)
    before = kept[-1].get(PROGRAM) if kept else None
    if before == program:
        return kept
    return [*kept, {AFTER: committed, PROGRAM: program}][-MOST:]


def made_by(program: Mapping[str, object] | None) -> list[Entry]:
    """The entries of a generation whose whole state one program has made; ``None``: an unknown one."""
    return [] if program is None else [{AFTER: -1, PROGRAM: program}]


def _after(entry: Entry) -> int:
    after = entry.get(AFTER)
    return after if isinstance(after, int) else -1
