"""The actions of a plan, and what takes each of them back.

The page, the JSON document, ``apply`` and ``undo`` consume the same list of actions; each must handle every kind, and
a kind that one of them forgets is a type error (``assert_never``). No value here is a path outside of what the plan is
about, but that of a side output: ``apply`` derives checkpoints from the home and the stream, and files from the
output's own manifest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from slackwater.model.sink import Cut, SideOutput, Swap
from slackwater.model.strict import STRICT


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
