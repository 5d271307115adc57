"""A plan: frozen data, made from facts, applied as it is or not at all.

``actions`` has what it consists of; the envelope does not depend on the goal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from slackwater.model.actions import Action, Inverse, SourceStart
from slackwater.model.finding import Goal
from slackwater.model.strict import STRICT

PLAN_SCHEMA: Literal["slackwater.plan/5"] = "slackwater.plan/5"


@dataclass(frozen=True, slots=True)
class Undo:
    """The inverse of the action with this index."""

    __pydantic_config__: ClassVar = STRICT

    action: int
    inverse: Inverse


Ranges = Literal["recorded", "new"]
"""Whether the first batch that is processed again keeps its recorded range, or takes what its sources have by then:
a later stage, whose source is the output that an earlier one writes again."""

OutputTreatment = Literal["cut", "keep", "clear", "swap", "aside"]
"""What becomes of what the sink has: batches that are processed again are cut from it, nothing is, or everything is; or
new output is built aside and put in its place when it has caught up; or rows go to a side output, and it is not
touched."""

PreconditionName = Literal[
    "generation",
    "planned",
    "committed",
    "written",
    "history",
    "pipeline",
    "source-files",
    "readers",
    "writer",
    "side-output",
]
PRECONDITIONS: Mapping[PreconditionName, str] = {
    "generation": "the generation in use",
    "planned": "the newest batch in offsets/",
    "committed": "the newest batch in commits/",
    "written": "the newest batch the sink shows",
    "history": "the recorded ranges of the batches to be replayed",
    "pipeline": "the pipeline file",
    "source-files": "source files that no longer exist",
    "readers": "streams that have read what is to be cut",
    "writer": "files of the checkpoint that the query has written since the operation was started",
    "side-output": "what is in the directory of the side output",
}


@dataclass(frozen=True, slots=True)
class Precondition:
    """A fact that one action relies on, as a string. It is checked just before that action starts, not after."""

    __pydantic_config__: ClassVar = STRICT

    action: int
    name: PreconditionName
    expected: str


@dataclass(frozen=True, slots=True)
class Cost:
    """What applying the plan takes. Rows are those that progress events reported; ``batches_uncounted`` had none."""

    __pydantic_config__: ClassVar = STRICT

    batches_replayed: int
    rows_read_again: int
    batches_uncounted: int
    rows_recorded: int
    batches_cut: int
    files_cut: int
    bytes_cut: int


@dataclass(frozen=True, slots=True)
class Facts:
    """What was seen when the plan was made. Marks are batch ids, -1 for none; ``pending`` as in ``BuildGeneration``.

    ``adopted`` is the directory of a checkpoint that the user's own code names, or its URI on another store, ``None``
    where Slackwater runs the stream. It is for people: ``apply`` takes it from the ledger.
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


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for, so that the plan can be derived again. ``retention_ms`` ``None``: from the query.

    ``target`` is a batch to continue after, of a replay the first one to be processed again, of a reset a position of
    the sources (or of ``only_source``), which ``starts`` has as it was found when the plan was made.
    Of a backfill ``target`` and ``to`` are the ends of the range, ``to`` ``None`` for all that no batch has read;
    ``starts`` and ``ends``, offsets by source, have the range as it was found; ``into`` is the directory of a side
    output, ``None`` where the rows go to the output of the stream.
    ``query_read`` is false where the changed query should have been read and Spark was not available.
    ``downstream``: streams that have read what is taken out of the output are planned, too.
    """

    __pydantic_config__: ClassVar = STRICT

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

    @classmethod
    def at(
        cls,
        target: str,
        retention_ms: int | None = None,
        output: OutputTreatment = "cut",
        *,
        downstream: bool = False,
        ranges: Ranges = "recorded",
    ) -> Self:
        """A request of a goal that needs no positions of the sources."""
        return cls(
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
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """One goal for one stream, with everything that ``apply`` needs to reach it or refuse, and the way back.

    ``downstream`` are the plans of later stages, in the order in which they are applied after this one. They are one
    operation with it: undone in the opposite order, and none of them alone.
    """

    __pydantic_config__: ClassVar = STRICT

    id: str
    goal: Goal
    stream: str
    pipeline_file: str
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
    schema: Literal["slackwater.plan/5"] = PLAN_SCHEMA

    @property
    def members(self) -> tuple[Plan, ...]:
        """The plan itself, then those of the later stages."""
        return (self, *self.downstream)
