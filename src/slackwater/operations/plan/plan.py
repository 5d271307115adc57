"""A plan: frozen data, applied as it is or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from slackwater.core.program import RowOrder
from slackwater.core.records import Ranges
from slackwater.core.sink import STRICT, Cut, OutputTreatment, Swap
from slackwater.operations.action import Action, Inverse, Precondition

LAST_WRITTEN = "last-written"
EARLIEST = "earliest"
BATCH = "batch:"
"""Targets of a request; a batch is followed by its id."""

BEFORE_ALL = -1
"""The stream starts from its beginning: batch 0 is next."""

PLAN_SCHEMA: Literal["slackwater.plan/1"] = "slackwater.plan/1"


@dataclass(frozen=True, slots=True)
class Undo:
    __pydantic_config__: ClassVar = STRICT

    action: int
    inverse: Inverse


def undo_of(actions: Sequence[Action]) -> tuple[Undo, ...]:
    """The inverses, the last action first."""
    inverses = [(index, action.inverse()) for index, action in enumerate(actions)]
    return tuple(Undo(index, inverse) for index, inverse in reversed(inverses) if inverse is not None)


def change_of(actions: Iterable[Action]) -> Cut | Swap | None:
    """The change of the output; a plan has at most one."""
    return next((action.change for action in actions if action.change is not None), None)


@dataclass(frozen=True, slots=True)
class Work:
    """``rows`` are from progress events or offsets; those of ``batches_uncounted`` are unknown. ``duration_ms``,
    without the start of Spark, is estimated from ``batches_timed`` batches.
    """

    __pydantic_config__: ClassVar = STRICT

    batches: int
    rows: int
    batches_uncounted: int
    files: int | None
    bytes: int | None
    duration_ms: int | None
    batches_timed: int


@dataclass(frozen=True, slots=True)
class Kept:
    """Output that a plan removes, kept until ``prune``. ``None``: unknown."""

    __pydantic_config__: ClassVar = STRICT

    batches: int
    rows: int | None
    files: int | None
    bytes: int | None


@dataclass(frozen=True, slots=True)
class Cost:
    """``batches_replayed`` run without output, for state. ``rows_recorded`` are all in the stream's progress events."""

    __pydantic_config__: ClassVar = STRICT

    batches_replayed: int
    apply: Work
    run: Work
    rows_recorded: int
    output: Kept
    checkpoint_bytes: int | None


@dataclass(frozen=True, slots=True)
class PlannedFacts:
    """Marks are batch ids, -1 for none. ``adopted``, the path of a checkpoint in the user's code, is for people:
    ``apply`` reads the ledger. ``keeps_unmarked``: the output keeps rows that its marker does not show.
    """

    __pydantic_config__: ClassVar = STRICT

    planned: int
    committed: int
    state: int | None
    written: int | None
    target: int
    contributing: int
    pending: int | None
    watermark_ms: int
    retention_ms: int | None
    delay_ms: int | None
    checkpoint_present: bool
    ranges_from: Literal["checkpoint", "ledger"]
    notes: tuple[str, ...]
    adopted: str | None
    keeps_unmarked: bool


@dataclass(frozen=True, slots=True)
class SourceStart:
    """``offset`` is as Spark writes it; ``log`` has all of ``sources/<source>/``. ``first`` is that folder without a
    batch, ``None`` if the source cannot start so.
    """

    __pydantic_config__: ClassVar = STRICT

    source: str
    offset: str
    log: dict[str, str]
    first: dict[str, str] | None
    summary: str


@dataclass(frozen=True, slots=True)
class Request:
    """A goal's request, from which the plan can be derived again. ``retention_ms`` ``None``: from the query.

    ``pipeline_file`` is the upgraded file or the last run's. ``pipeline_named``: commands that plan again have to name
    it. ``target`` is a batch to continue after, a replay's first batch, or a reset's position of the sources (or of
    ``only_source``), whose offsets at planning are in ``starts``. A backfill's range is ``target`` to ``to`` (``None``:
    all unread), found as ``starts`` and ``ends``; ``into`` is its directory. ``query_read`` is false if Spark was
    unavailable. ``downstream``: readers of removed output are planned, too. ``session`` are options of Spark in
    commands (``session_words``). ``row_order`` "any": functions of arbitrary state, and aggregates by row order, give
    the same for any order of rows.
    """

    __pydantic_config__: ClassVar = STRICT

    goal: str
    pipeline_file: str
    target: str
    retention_ms: int | None
    query_read: bool
    output: OutputTreatment
    only_source: str | None
    starts: tuple[SourceStart, ...]
    to: str | None
    ends: dict[str, str]
    downstream: bool
    ranges: Ranges
    into: str | None
    row_order: RowOrder | None
    pipeline_named: bool
    session: tuple[str, ...]

    @classmethod
    def at(
        cls,
        goal: str,
        target: str,
        retention_ms: int | None = None,
        output: OutputTreatment = "cut",
        *,
        downstream: bool = False,
        ranges: Ranges = "recorded",
    ) -> Self:
        return cls(
            goal,
            "",
            target,
            retention_ms,
            query_read=True,
            output=output,
            only_source=None,
            starts=(),
            to=None,
            ends={},
            downstream=downstream,
            ranges=ranges,
            into=None,
            row_order=None,
            pipeline_named=False,
            session=(),
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """``downstream`` plans of later stages are applied in order, as one operation: undone in reverse, never alone."""

    __pydantic_config__: ClassVar = STRICT

    id: str
    stream: str
    made_at: str
    request: Request
    target: str
    facts: PlannedFacts
    preconditions: tuple[Precondition, ...]
    actions: tuple[Action, ...]
    cost: Cost
    risks: tuple[str, ...]
    undo: tuple[Undo, ...]
    downstream: tuple[Plan, ...]
    schema: Literal["slackwater.plan/1"] = PLAN_SCHEMA

    @property
    def goal(self) -> str:
        return self.request.goal

    @property
    def pipeline_file(self) -> str:
        return self.request.pipeline_file

    @property
    def members(self) -> tuple[Plan, ...]:
        return (self, *self.downstream)

    @property
    def needs_name(self) -> bool:
        """Whether ``--yes`` is not enough: the stream's name has to be typed."""
        return self.request.output == "clear" or self.facts.keeps_unmarked
