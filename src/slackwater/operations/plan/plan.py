"""A plan: frozen data, made from facts, applied as it is or not at all.

``actions`` has what it consists of; the envelope does not depend on the goal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from slackwater.core.profile import RowOrder
from slackwater.core.records import Ranges
from slackwater.core.sink import OutputTreatment
from slackwater.core.strict import STRICT
from slackwater.operations.action import Action, Inverse, Precondition

LAST_WRITTEN = "last-written"
EARLIEST = "earliest"
BATCH = "batch:"
"""Targets of a request; a batch is followed by its id."""

BEFORE_ALL = -1
"""The batch to continue after where a stream is processed from its beginning: batch 0 is the next one."""

PLAN_SCHEMA: Literal["slackwater.plan/1"] = "slackwater.plan/1"


@dataclass(frozen=True, slots=True)
class Undo:
    """The inverse of the action with this index."""

    __pydantic_config__: ClassVar = STRICT

    action: int
    inverse: Inverse


def undo_of(actions: Sequence[Action]) -> tuple[Undo, ...]:
    """The way back from a list of actions, the last action first."""
    inverses = [(index, action.inverse()) for index, action in enumerate(actions)]
    return tuple(Undo(index, inverse) for index, inverse in reversed(inverses) if inverse is not None)


@dataclass(frozen=True, slots=True)
class Work:
    """Recorded batches that are processed again, or the new one of a backfill.

    ``rows`` are those that progress events reported or offsets show; of ``batches_uncounted`` they are unknown.
    ``files`` and ``bytes`` are of source files, as they were when they were read; ``None`` where they are unknown.
    ``duration_ms`` is estimated from ``batches_timed`` recorded batches, ``None`` where no recorded batch has a
    duration; the start of Spark is not in it.
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
    """What leaves an output and is kept until ``prune``, as the output lists it. ``None``: unknown."""

    __pydantic_config__: ClassVar = STRICT

    batches: int
    rows: int | None
    files: int | None
    bytes: int | None


@dataclass(frozen=True, slots=True)
class Cost:
    """What applying the plan takes: ``apply`` is done by it, ``run`` by the run that follows.

    ``batches_replayed`` of ``apply`` are run without output, for their state. ``rows_recorded`` are all that progress
    events reported of the stream. ``checkpoint_bytes`` are those of the checkpoint that is kept, ``None`` where they
    are unknown.
    """

    __pydantic_config__: ClassVar = STRICT

    batches_replayed: int
    apply: Work
    run: Work
    rows_recorded: int
    output: Kept
    checkpoint_bytes: int | None


@dataclass(frozen=True, slots=True)
class Facts:
    """What was seen when the plan was made. Marks are batch ids, -1 for none; ``pending`` as in ``BuildGeneration``.

    ``adopted`` is the directory of a checkpoint that the user's own code names, or its URI on another store, ``None``
    where Slackwater runs the stream. It is for people: ``apply`` takes it from the ledger. ``keeps_unmarked``: the
    output keeps rows that its marker does not show.
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
    """Where a source starts: ``offset`` as Spark writes it, with the whole of ``sources/<source>/`` in ``log``.

    ``first`` is that folder for a checkpoint without any batch, ``None`` where the source cannot start so.
    ``summary`` is for people.
    """

    __pydantic_config__: ClassVar = STRICT

    source: str
    offset: str
    log: dict[str, str]
    first: dict[str, str] | None
    summary: str


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for, so that the plan can be derived again. ``retention_ms`` ``None``: from the query.

    ``pipeline_file`` is the upgraded file, or that of the last run; empty where none is known or none was named yet.
    ``pipeline_named``: it was named for this plan, so that a command that plans again has to name it, too.
    ``target`` is a batch to continue after, of a replay the first one to be processed again, of a reset a position of
    the sources (or of ``only_source``), which ``starts`` has as it was found when the plan was made.
    Of a backfill ``target`` and ``to`` are the ends of the range, ``to`` ``None`` for all that no batch has read;
    ``starts`` and ``ends``, offsets by source, have the range as it was found; ``into`` is the directory of a
    backfill, ``None`` where the rows go to the output of the stream.
    ``query_read`` is false where the changed query should have been read and Spark was not available.
    ``downstream``: streams that have read what is taken out of the output are planned, too.
    ``session`` are the options with which commands for it start Spark (``session_words``).
    ``row_order`` "any": the user's functions of arbitrary state, and aggregates by the order of rows, give the same for
    any order of the rows of a batch.
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
        """A request of a goal that needs no positions of the sources."""
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
    """One goal for one stream, with everything that ``apply`` needs to reach it or refuse, and the way back.

    ``downstream`` are the plans of later stages, in the order in which they are applied after this one. They are one
    operation with it: undone in the opposite order, and none of them alone.
    """

    __pydantic_config__: ClassVar = STRICT

    id: str
    stream: str
    made_at: str
    request: Request
    target: str
    facts: Facts
    preconditions: tuple[Precondition, ...]
    actions: tuple[Action, ...]
    cost: Cost
    risks: tuple[str, ...]
    undo: tuple[Undo, ...]
    downstream: tuple[Plan, ...]
    schema: Literal["slackwater.plan/1"] = PLAN_SCHEMA

    @property
    def goal(self) -> str:
        """The name of its goal."""
        return self.request.goal

    @property
    def pipeline_file(self) -> str:
        """The pipeline file with the code that it is for; empty where none is known."""
        return self.request.pipeline_file

    @property
    def members(self) -> tuple[Plan, ...]:
        """The plan itself, then those of the later stages."""
        return (self, *self.downstream)

    @property
    def needs_name(self) -> bool:
        """Whether ``--yes`` is not enough: the stream's name has to be typed."""
        return self.request.output == "clear" or self.facts.keeps_unmarked
