"""A plan: frozen data, made from facts, applied as it is or not at all.

The page, the JSON document, ``apply`` and ``undo`` consume the same list of actions; each must handle every kind, and
a kind that one of them forgets is a type error (``assert_never``). The envelope does not depend on the goal.

No value here is a path outside of what the plan is about: ``apply`` derives checkpoints from the home and the stream,
and files from the output's own manifest. A side output is the only place that a plan names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from slackwater.model.finding import Goal
from slackwater.model.sink import Cut, SideOutput, Swap
from slackwater.model.strict import STRICT

PLAN_SCHEMA: Literal["slackwater.plan/5"] = "slackwater.plan/5"


@dataclass(frozen=True, slots=True)
class BuildGeneration:
    """Build the base of the next checkpoint aside: the query's id, source logs, and an empty state before ``first``.

    ``pending`` is the batch after ``last`` that the new checkpoint plans with its recorded range, ``None`` for none.
    """

    __pydantic_config__: ClassVar = STRICT

    number: int
    query_id: str
    first: int
    last: int
    pending: int | None
    kind: Literal["build-generation"] = "build-generation"


@dataclass(frozen=True, slots=True)
class CopyGeneration:
    """Build the next checkpoint aside from that of generation ``source``, up to batch ``last``.

    ``pending`` is as in ``BuildGeneration``. ``state`` is the newest batch whose state is copied, ``None`` for none.
    """

    __pydantic_config__: ClassVar = STRICT

    number: int
    source: int
    query_id: str
    last: int
    pending: int | None
    state: int | None
    kind: Literal["copy-generation"] = "copy-generation"


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
class StartGeneration:
    """Build a checkpoint aside whose sources start at ``starts``, with empty state, behind batch ``last``.

    -1: the checkpoint has no batch, and the first one is 0.
    """

    __pydantic_config__: ClassVar = STRICT

    number: int
    query_id: str
    last: int
    starts: tuple[SourceStart, ...]
    kind: Literal["start-generation"] = "start-generation"

    @property
    def pending(self) -> None:
        """No batch is planned in it."""

    def log_of(self, start: SourceStart) -> dict[str, str]:
        """The own log of one of its sources. Where a source cannot start so, its first batch is planned: all of it."""
        return start.log if self.last >= 0 or start.first is None else start.first


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    """Batches ``first`` to ``last`` are replayed under these SQL settings: those of the runs that executed them.

    ``None``: not recorded; they are replayed under the settings of the session.
    """

    __pydantic_config__: ClassVar = STRICT

    first: int
    last: int
    settings: dict[str, str] | None


@dataclass(frozen=True, slots=True)
class ReplayBatches:
    """Run the recorded batches again under their own ids and watermarks, without output, to recompute their state."""

    __pydantic_config__: ClassVar = STRICT

    number: int
    first: int
    last: int
    settings: tuple[ReplaySettings, ...]
    kind: Literal["replay-batches"] = "replay-batches"


@dataclass(frozen=True, slots=True)
class PlanBatch:
    """Plan ``batch`` in the new checkpoint with its recorded range, so that it is the next to run."""

    __pydantic_config__: ClassVar = STRICT

    number: int
    batch: int
    kind: Literal["plan-batch"] = "plan-batch"


@dataclass(frozen=True, slots=True)
class SkipBatch:
    """Plan and commit ``batch`` in the new checkpoint where the batch before it ended, without running it.

    Its id is that of a batch that another checkpoint runs; the query continues behind it from exactly there.
    """

    __pydantic_config__: ClassVar = STRICT

    number: int
    batch: int
    kind: Literal["skip-batch"] = "skip-batch"


@dataclass(frozen=True, slots=True)
class VerifyGeneration:
    """Read the new checkpoint back: marks, ranges and watermarks must be the recorded ones.

    ``state`` is the newest batch whose state must be there, unless the query turns out to keep none.
    """

    __pydantic_config__: ClassVar = STRICT

    number: int
    first: int
    last: int
    pending: int | None
    state: int | None
    kind: Literal["verify-generation"] = "verify-generation"


@dataclass(frozen=True, slots=True)
class CutSink:
    """Take whole batches out of the sink, as the output itself listed them; the operation's backup keeps them."""

    __pydantic_config__: ClassVar = STRICT

    cut: Cut
    kind: Literal["cut-sink"] = "cut-sink"


@dataclass(frozen=True, slots=True)
class StageOutput:
    """Prepare an output aside with what the batches up to ``after`` wrote, -1 for nothing."""

    __pydantic_config__: ClassVar = STRICT

    after: int
    kind: Literal["stage-output"] = "stage-output"


@dataclass(frozen=True, slots=True)
class RunStaged:
    """Run the query with the new checkpoint into the staged output, until it has processed what its sources have."""

    __pydantic_config__: ClassVar = STRICT

    number: int
    kind: Literal["run-staged"] = "run-staged"


@dataclass(frozen=True, slots=True)
class SwapOutput:
    """Put the staged output in the place of the real one, in one step; the real one is kept."""

    __pydantic_config__: ClassVar = STRICT

    swap: Swap
    kind: Literal["swap-output"] = "swap-output"


@dataclass(frozen=True, slots=True)
class RunBackfill:
    """Run ``batch``, and no other, with checkpoint ``number`` into the output of the stream.

    ``ends`` has for each source the offset at which the batch ends, as Spark writes it.
    """

    __pydantic_config__: ClassVar = STRICT

    number: int
    batch: int
    ends: dict[str, str]
    kind: Literal["run-backfill"] = "run-backfill"


@dataclass(frozen=True, slots=True)
class RunAside:
    """Run batch 0, and no other, with checkpoint ``number`` into a side output. ``ends`` as in ``RunBackfill``.

    Batch 0, because readers of the file sink's manifest need every entry from the first one on.
    """

    __pydantic_config__: ClassVar = STRICT

    number: int
    ends: dict[str, str]
    output: SideOutput
    kind: Literal["run-aside"] = "run-aside"

    batch: ClassVar[int] = 0


@dataclass(frozen=True, slots=True)
class SwitchGeneration:
    """Make another checkpoint the one in use; the old one stays."""

    __pydantic_config__: ClassVar = STRICT

    old: int
    new: int
    kind: Literal["switch-generation"] = "switch-generation"


@dataclass(frozen=True, slots=True)
class RemoveGeneration:
    """Remove a checkpoint that the operation has built; its journal is the evidence that it did."""

    __pydantic_config__: ClassVar = STRICT

    number: int
    kind: Literal["remove-generation"] = "remove-generation"


@dataclass(frozen=True, slots=True)
class DiscardStaged:
    """Remove the staged output of the operation."""

    __pydantic_config__: ClassVar = STRICT

    kind: Literal["discard-staged"] = "discard-staged"


@dataclass(frozen=True, slots=True)
class SwapBack:
    """Put the output that was replaced back in its place."""

    __pydantic_config__: ClassVar = STRICT

    swap: Swap
    kind: Literal["swap-back"] = "swap-back"


@dataclass(frozen=True, slots=True)
class CutBackfill:
    """Take out of the sink what it has of the batches after ``after``; which files these are is known only then."""

    __pydantic_config__: ClassVar = STRICT

    after: int
    kind: Literal["cut-backfill"] = "cut-backfill"


@dataclass(frozen=True, slots=True)
class DiscardAside:
    """Remove what the operation has written to a side output; the directory itself stays."""

    __pydantic_config__: ClassVar = STRICT

    output: SideOutput
    kind: Literal["discard-aside"] = "discard-aside"


@dataclass(frozen=True, slots=True)
class RestoreSink:
    """Put batches that were cut back into the sink, from the operation's backup."""

    __pydantic_config__: ClassVar = STRICT

    cut: Cut
    kind: Literal["restore-sink"] = "restore-sink"


Base = BuildGeneration | CopyGeneration | StartGeneration
"""The action that starts a new checkpoint: each generation that a plan builds has exactly one."""

Building = Base | ReplayBatches | PlanBatch | SkipBatch | VerifyGeneration
"""Actions that change nothing but the new checkpoint."""

Action = Building | CutSink | StageOutput | RunStaged | SwapOutput | RunBackfill | RunAside | SwitchGeneration
Inverse = RemoveGeneration | RestoreSink | DiscardStaged | SwapBack | CutBackfill | DiscardAside | SwitchGeneration


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
